/* Fuselage from C (C11) and from whatever calls C: read a network, quantize it, run it. example.c is a whole program.

   A function that can fail returns a fuselage_status*: NULL where it succeeded, else what was found and what was
   wanted, for the caller to free. Then nothing was stored through its last parameter. Pointers must not be NULL but
   where it is said. No exception leaves the library, and it has no state but these objects. */
#ifndef FUSELAGE_H_
#define FUSELAGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSELAGE_VERSION "0.1.0"
const char* fuselage_version(void); /* The library's; the header's is FUSELAGE_VERSION. */

typedef struct fuselage_status fuselage_status;
typedef enum {
  FUSELAGE_OK = 0, /* Of NULL. */
  FUSELAGE_INVALID_ARGUMENT = 3,
  FUSELAGE_NOT_FOUND = 5,
  FUSELAGE_RESOURCE_EXHAUSTED = 8, /* Memory, of the machine or of a limit. */
  FUSELAGE_UNIMPLEMENTED = 12,     /* What this version, or this machine, cannot do. */
  FUSELAGE_INTERNAL = 13,          /* A mistake in Fuselage. */
  FUSELAGE_UNAVAILABLE = 14        /* A file that is there and cannot be read, or one that cannot be written. */
} fuselage_code;
fuselage_code fuselage_status_code(const fuselage_status* status);  /* NULL may be given. */
const char* fuselage_status_message(const fuselage_status* status); /* Lives as long as the status; of NULL: "". */
void fuselage_status_free(fuselage_status* status);                 /* NULL may be given, as to all that free. */

typedef enum {
  FUSELAGE_BOOL,
  FUSELAGE_U8,
  FUSELAGE_I8,
  FUSELAGE_I16,
  FUSELAGE_I32,
  FUSELAGE_I64,
  FUSELAGE_F16,
  FUSELAGE_F32,
  FUSELAGE_F64
} fuselage_dtype;

/* An input or an output by the name that the network's file gives it: dense, row-major. */
typedef struct {
  const char* name;
  fuselage_dtype dtype;
  int32_t rank;
  const int64_t* shape; /* Dimension 0 is the batch. */
  void* data;           /* The caller's. Inputs are read only. In a description: NULL. */
} fuselage_tensor;

/* A network. It never changes; any number of threads may use it. */
typedef struct fuselage_model fuselage_model;

/* An ONNX file, an .ir file, or what fuselage_save wrote. */
fuselage_status* fuselage_load(const char* path, fuselage_model** model);

/* What a network of images takes of each: its floats, [n, c, h, w], or its bytes, u8. */
typedef enum {
  FUSELAGE_FLOATS = 0,
  FUSELAGE_PLANES = 1, /* [n, c, h, w] */
  FUSELAGE_PIXELS = 2  /* [n, h, w, c] */
} fuselage_image;

/* Shapes, constants and outputs are for ONNX files, the image for all but what fuselage_save wrote. */
typedef struct {
  size_t size;                      /* sizeof(fuselage_load_options). */
  const fuselage_tensor* shapes;    /* Of inputs, by name, where the file leaves dimensions open: no data, any dtype. */
  const fuselage_tensor* constants; /* Inputs that have these values for good, which are copied: no inputs any more. */
  const char* const* outputs;       /* Values that are the outputs in place of the file's: what follows them is left. */
  int32_t num_shapes, num_constants, num_outputs;
  fuselage_image image;    /* Of bytes its first operators make (x / 255 - mean) / std. */
  const float *mean, *std; /* One value for all channels, or one each; none: 0 and 1. */
  int32_t num_mean, num_std;
  int32_t allow_nonfinite;  /* 0: a weight that is infinite or not a number is an error. */
  int64_t max_memory_bytes; /* Of reading the file. 0: the reader's limit. */
} fuselage_load_options;

/* As fuselage_load. `options`: NULL for the defaults. */
fuselage_status* fuselage_load_with(const char* path, const fuselage_load_options* options, fuselage_model** model);

typedef struct {
  size_t size;          /* sizeof(fuselage_compile_options). */
  int32_t threads;      /* For calibration; its result does not depend on them. 0: 1. */
  const char* pipeline; /* What a config has between the braces of `pipeline { }`. NULL: the default one, to INT8. */
} fuselage_compile_options;

/* To INT8. `samples`: for each input its values for any number of samples, which dimension 0 counts; activations are
   calibrated on all of them. `options`: NULL for the defaults. */
fuselage_status* fuselage_compile(const fuselage_model* model, const fuselage_tensor* samples, int32_t num_samples,
                                  const fuselage_compile_options* options, fuselage_model** compiled);

typedef struct {
  size_t size; /* sizeof(fuselage_save_options). */
  /* The instruction sets to pack weights for, which this CPU must run, with commas between them: "avx2,avx512_vnni".
     Others pack when they prepare. "": none. NULL: the CPU's best. */
  const char* isas;
} fuselage_save_options;

/* A .fuse file, which fuselage_load maps and does not copy: processes that load it share its pages. */
fuselage_status* fuselage_save(const fuselage_model* model, const char* path, const fuselage_save_options* options);

/* What one sample is; *count of them. They live as long as the model. */
const fuselage_tensor* fuselage_model_inputs(const fuselage_model* model, int32_t* count);
const fuselage_tensor* fuselage_model_outputs(const fuselage_model* model, int32_t* count);

/* What loading found that nobody may have meant, and what each pass did to which node, or nearly did and why not:
   "fusion: missed: %conv1: ..."; *count of them. They live as long as the model. */
const char* const* fuselage_model_warnings(const fuselage_model* model, int32_t* count);
const char* const* fuselage_model_remarks(const fuselage_model* model, int32_t* count);

/* Sessions may outlive their model. */
void fuselage_model_free(fuselage_model* model);

/* A model ready to run. Sessions of one model share its packed weights and have memory for activations of their own.
   Each runs one call at a time; different ones may run at once. */
typedef struct fuselage_session fuselage_session;

#define FUSELAGE_ANY_BATCH (-1) /* What dimension 0 of a run's inputs says, 1 or more. */

typedef struct {
  size_t size;              /* sizeof(fuselage_session_options). */
  int32_t threads;          /* 0: 1. */
  int64_t batch;            /* Or FUSELAGE_ANY_BATCH. 0: 1. */
  const char* isa;          /* The best that kernels may use: "scalar", "avx2", ... NULL: the CPU's best. */
  int64_t max_memory_bytes; /* Of weights and activations. 0: no limit. */
  int32_t kept_batches;     /* With FUSELAGE_ANY_BATCH: how many stay prepared, those used last. 0: 4. */
} fuselage_session_options;

fuselage_status* fuselage_prepare(const fuselage_model* model, const fuselage_session_options* options,
                                  fuselage_session** session);

/* As fuselage_model_inputs, for the session's batch; any: for one sample. They live as long as the session. */
const fuselage_tensor* fuselage_session_inputs(const fuselage_session* session, int32_t* count);
const fuselage_tensor* fuselage_session_outputs(const fuselage_session* session, int32_t* count);

/* The outputs of this batch, which is prepared if it is not: the first run need not. They live until the next such call
   for the session. */
fuselage_status* fuselage_session_outputs_at(fuselage_session* session, int64_t batch, int32_t* count,
                                             const fuselage_tensor** outputs);

/* Reads all inputs and writes the outputs that are asked for, in any order; each of the type that the session says, for
   any batch that of the inputs. After an error outputs hold anything. */
fuselage_status* fuselage_run(fuselage_session* session, const fuselage_tensor* inputs, int32_t num_inputs,
                              const fuselage_tensor* outputs, int32_t num_outputs);

void fuselage_session_free(fuselage_session* session);

#ifdef __cplusplus
}
#endif

#endif /* FUSELAGE_H_ */
