// For the tests of cuda_library: y[i] = scale * x[i] + y[i], rounded after the product and after the sum.
#ifndef FUSELAGE_THIRD_PARTY_CUDA_TESTING_SCALED_ADD_H_
#define FUSELAGE_THIRD_PARTY_CUDA_TESTING_SCALED_ADD_H_

namespace fuselage::cuda_testing {

// On the host's pointers, through the first device. The text of the CUDA error; "" on success.
const char* ScaledAdd(int n, float scale, const float* x, float* y);

}  // namespace fuselage::cuda_testing

#endif  // FUSELAGE_THIRD_PARTY_CUDA_TESTING_SCALED_ADD_H_
