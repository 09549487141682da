#include "kernels/int8/attention/loops.h"

namespace fuselage::int8::attention {

void avx2::Weights(const Softmax& softmax) { WeightsLoop(softmax); }

void avx2::Finish(const Mixtures& mixtures) { FinishLoop(mixtures); }

void avx2::Scores(const FewScores& few) { ScoresLoop(few); }

void avx2::Mix(const FewMixtures& few) { MixLoop(few); }

}  // namespace fuselage::int8::attention
