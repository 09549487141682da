// What the network of testdata/small.ir makes of SeededTensor(f32[1,3,32,24], 1): small_test on any machine, and
// generate_test by each op's reference evaluation.
#ifndef FUSELAGE_COMPILER_STANDALONE_SMALL_LOGITS_H_
#define FUSELAGE_COMPILER_STANDALONE_SMALL_LOGITS_H_

namespace fuselage::standalone {

constexpr float kSmallLogits[] = {-0x1.e63b66p+4f, 0x1.f6f9dep+1f, -0x1.b45812p+4f, -0x1.9bdd3p+4f, 0x1.6e4ccep+5f};

}  // namespace fuselage::standalone

#endif  // FUSELAGE_COMPILER_STANDALONE_SMALL_LOGITS_H_
