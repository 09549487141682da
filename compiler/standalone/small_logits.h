// What the network of testdata/small.ir makes of SeededTensor(f32[1,3,32,24], 1): small_test on any machine, and
// generate_test by each op's reference evaluation.
#ifndef FUSELAGE_COMPILER_STANDALONE_SMALL_LOGITS_H_
#define FUSELAGE_COMPILER_STANDALONE_SMALL_LOGITS_H_

namespace fuselage::standalone {

constexpr float kSmallLogits[] = {-0x1.b5d918p+4f, -0x1.3d709ep-3f, -0x1.2ba1ccp+4f, 0x1.e1eb86p+2f, -0x1.6f53fap+2f};

}  // namespace fuselage::standalone

#endif  // FUSELAGE_COMPILER_STANDALONE_SMALL_LOGITS_H_
