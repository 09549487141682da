/* From a network's file to INT8, and from an image to logits, in C:
     cc example.c $(pkg-config --cflags --libs fuselage) -o example && ./example resnet18_fashion_mnist.onnx */
#include <fuselage.h>
#include <stdio.h>
#include <stdlib.h>

static void Check(fuselage_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", fuselage_status_message(status));
  exit(1);
}

/* Room for the tensor with `batch` samples: zeros, in place of images. */
static fuselage_tensor Zeros(const fuselage_tensor* like, int64_t batch, int64_t* shape) {
  fuselage_tensor tensor = *like;
  size_t elements = 1;
  for (int32_t i = 0; i < like->rank; ++i) {
    shape[i] = i == 0 ? batch : like->shape[i];
    elements *= (size_t)shape[i];
  }
  tensor.shape = shape;
  tensor.data = calloc(elements, sizeof(double)); /* The widest type. */
  if (tensor.data == NULL) exit(1);
  return tensor;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fuselage_model *network, *int8;
  Check(fuselage_load(argv[1], &network));
  int32_t inputs, outputs;
  const fuselage_tensor* input = fuselage_model_inputs(network, &inputs);
  if (inputs != 1 || input->rank > 4) return 2;

  int64_t shape[4];
  fuselage_tensor samples = Zeros(input, 4, shape);
  for (int64_t i = 0; i < 4 * shape[1]; ++i) ((float*)samples.data)[i] = 0.1f * (float)(i % 7);
  Check(fuselage_compile(network, &samples, 1, NULL, &int8));

  fuselage_session* session;
  fuselage_session_options options = {.size = sizeof options, .threads = 2};
  Check(fuselage_prepare(int8, &options, &session));

  int64_t image_shape[4], logits_shape[4];
  fuselage_tensor image = Zeros(fuselage_session_inputs(session, &inputs), 1, image_shape);
  fuselage_tensor logits = Zeros(fuselage_session_outputs(session, &outputs), 1, logits_shape);
  Check(fuselage_run(session, &image, 1, &logits, 1));
  printf("%s:", logits.name);
  for (int64_t i = 0; i < logits_shape[1]; ++i) printf(" %g", ((float*)logits.data)[i]);
  printf("\n");

  free(samples.data);
  free(image.data);
  free(logits.data);
  fuselage_session_free(session);
  fuselage_model_free(int8);
  fuselage_model_free(network);
  return 0;
}
