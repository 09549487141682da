// The products that int8.rnn, int8.gru and int8.lstm are made of, each an int8.linear, whatever the device.
#ifndef FUSELAGE_KERNELS_INT8_RECURRENT_PRODUCTS_H_
#define FUSELAGE_KERNELS_INT8_RECURRENT_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/recurrent/cell.h"

namespace fuselage::int8::recurrent {

// The layer's cell, with checks of what the products' descriptions do not say.
absl::StatusOr<fuselage::recurrent::Cell> CellOf(const kernels::KernelDesc& desc);

// The codes that states are for their product: [rows, H], N of each direction.
TensorType StateCodes(int64_t rows, const fuselage::recurrent::Sizes& sizes);

struct Product {
  const char* weight;  // The parameter's name.
  int64_t bias;        // Which half of the direction's.
  TensorType x;
  int64_t direction, begin, end;  // Rows of the weight.
};

// All products of a direction: of the input, of the state, and that of r*h where there is one.
std::vector<Product> ProductsOf(const kernels::KernelDesc& desc, const fuselage::recurrent::Cell& cell,
                                int64_t direction);

// A product's description as int8.linear, and what that points to. Borrows the weight.
class LinearOf {
 public:
  LinearOf(const kernels::KernelDesc& layer, const Product& product);
  LinearOf(const LinearOf&) = delete;
  LinearOf& operator=(const LinearOf&) = delete;

  const kernels::KernelDesc& desc() const { return desc_; }

 private:
  // What is packed of some rows of a weight, where what is packed of the whole is kept.
  class RowsOfWeight final : public kernels::PackedWeights {
   public:
    RowsOfWeight(const kernels::KernelDesc& layer, const Product& product);
    std::shared_ptr<const Tensor> Get(const kernels::Parameter&, const std::string& layout,
                                      absl::FunctionRef<Tensor()> pack) override;

   private:
    const kernels::KernelDesc& layer_;
    const std::string weight_, rows_;
  };

  const Tensor rows_;
  Tensor bias_;
  RowsOfWeight packed_;
  kernels::KernelDesc desc_;
};

}  // namespace fuselage::int8::recurrent

#endif  // FUSELAGE_KERNELS_INT8_RECURRENT_PRODUCTS_H_
