// The operators that can be imported. A file of converters/ has those of one family: their rows, which it registers,
// and the functions that turn their nodes into calls. A new file needs no more than to be there.
#ifndef FUSELAGE_FRONTEND_ONNX_CONVERTERS_H_
#define FUSELAGE_FRONTEND_ONNX_CONVERTERS_H_

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/call.h"
#include "ir/base/hash_map.h"

namespace fuselage::onnx {

inline constexpr int kOldestOpset = 7;
inline constexpr int kNewestOpset = 25;
inline constexpr int kAnyNumber = std::numeric_limits<int>::max();

struct Arity {
  int least, most;
};

// How a node of one operator becomes calls. A model of an opset before kOldestOpset loads where none of its operators
// has changed its meaning between that opset and kOldestOpset.
struct Converter {
  absl::string_view name;
  int since;  // The oldest opset whose form of the operator is understood.
  Arity inputs, outputs;
  absl::string_view attributes;  // All that any opset has: "axis=INT perm=INTS".
  absl::Status (*convert)(Call& call);
  std::string target = "";  // The op that it becomes, where that is one; "": the name in lower case.
};

// github.com/microsoft/onnxruntime, docs/ContribOperators.md. Its operators have no opsets: `since` is 0.
inline constexpr char kMicrosoft[] = "com.microsoft";

class Converters {
 public:
  // Aborts on an operator that the domain has already.
  void Add(std::initializer_list<Converter> converters) { Add("", converters); }
  void Add(absl::string_view domain, std::initializer_list<Converter> converters);
  const Converter* FindOrNull(absl::string_view domain, absl::string_view name) const;

 private:
  HashMap<std::pair<absl::string_view, absl::string_view>, Converter> by_name_;
};

// Those of all files of converters/.
void RegisterAll(Converters& converters);

// "" and "ai.onnx" are one domain.
bool IsDefaultDomain(absl::string_view domain);
const Converter* FindConverterOrNull(absl::string_view domain, absl::string_view name);

// The call that has the operands in their order and no attributes, for operators that need no function of their own.
absl::Status ConvertSame(Call& call);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_CONVERTERS_H_
