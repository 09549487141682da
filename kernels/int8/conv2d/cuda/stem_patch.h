// Fetches input of at most four channels to shared memory, as words of four channels: a fragment register of mma is one
// such word, so windows overlap without being copied.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_PATCH_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_PATCH_H_

#include <cstdint>

#include "kernels/cuda/codes.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/stem_layout.h"

namespace fuselage::int8::conv2d::cuda {

FUSELAGE_DEVICE uint32_t FunnelShift(uint32_t low, uint32_t high, int bits) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> bits);
}

// Of the patch that begins with pixel (first_y, first_x), to shared memory at `offset`. All codes get `flip`. Channels
// that the input does not have are anything: their weights are zeros.
template <int kThreads>
class StemFetch {
 public:
  static constexpr int kBatch = StemPatch::kBatch;

  FUSELAGE_DEVICE StemFetch(const Params& p, const StemPatch& patch, int image, int first_y, int first_x, uint8_t flip)
      : p_(p),
        patch_(patch),
        first_y_(first_y),
        first_x_(first_x),
        flip_(::fuselage::cuda::Splat(flip)),
        padding_(::fuselage::cuda::Splat(p.padding ^ flip)),
        image_(p.input + int64_t{image} * p.in_height * p.in_width * p.in_channels) {}

  // A thread keeps to its four pixels of a line, and goes down.
  FUSELAGE_DEVICE void Run(Thread thread, uint32_t offset) const {
    const int fours = patch_.width / 4, first_line = static_cast<int>(patch_.fours.Divide(thread.index()));
    if (first_line >= patch_.step) return;
    FUSELAGE_NO_UNROLL
    for (int four = thread.index() - first_line * fours; four < fours; four += kThreads) {
      const int x = first_x_ + 4 * four;
      const uint32_t to = offset + 16 * four;
      const bool some = x > -4 && x < p_.in_width;
      if (patch_.three_in_words && x >= 0 && x + 4 <= p_.in_width) {
        FetchThree(thread, x, first_line, to);
      } else if (some) {
        FetchBytes(thread, x, first_line, to);
      }
      // Over what those left of lines outside of the image.
      const int begin = some ? Clamp(-first_y_) : patch_.height, end = Clamp(p_.in_height - first_y_);
      FUSELAGE_NO_UNROLL
      for (int line = first_line; line < begin; line += patch_.step) {
        thread.StoreShared(to + Place(line), Pixels{{padding_, padding_, padding_, padding_}});
      }
      FUSELAGE_NO_UNROLL
      for (int line = first_line + (patch_.rounds - 1) * patch_.step; line >= end; line -= patch_.step) {
        thread.StoreShared(to + Place(line), Pixels{{padding_, padding_, padding_, padding_}});
      }
    }
  }

 private:
  using Pixels = Vector<uint32_t, 4>;

  // As a line of the patch, or its end.
  FUSELAGE_DEVICE int Clamp(int line) const { return line < 0 ? 0 : line < patch_.height ? line : patch_.height; }
  FUSELAGE_DEVICE uint32_t Place(int line) const { return 4 * line * patch_.width; }

  // Four pixels of three channels, from the words that they lie in. What is outside of the image is its nearest line.
  FUSELAGE_DEVICE void FetchThree(Thread thread, int x, int line, uint32_t to) const {
    const int of_line = 3 * p_.in_width, of_step = patch_.step * of_line;
    // From here to a line's first byte: one before the image, and behind it, wherever that is.
    const uintptr_t past_image = reinterpret_cast<uintptr_t>(image_) % 4;
    const auto* words = reinterpret_cast<const uint32_t*>(image_ - past_image);
    const int first = static_cast<int>(past_image) + 3 * x, last = first + (p_.in_height - 1) * of_line;
    uint32_t at = first + static_cast<uint32_t>(first_y_ + line) * of_line;  // Modulo 2^32, outside of the image.
    to += Place(line);
    FUSELAGE_NO_UNROLL
    for (int round = 0; round < patch_.rounds; round += kBatch) {
      uint32_t w[kBatch][4], past[kBatch];
      FUSELAGE_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        const int near = static_cast<int>(at);
        const auto inside = static_cast<uint32_t>(near < first ? first : near < last ? near : last);
        past[b] = inside % 4;
        FUSELAGE_UNROLL
        for (int i = 0; i < 3; ++i) w[b][i] = thread.Load(words + inside / 4 + i);
        w[b][3] = past[b] > 0 ? thread.Load(words + inside / 4 + 3) : 0;
        at += of_step;
      }
      FUSELAGE_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 3; ++i) w[b][i] = FunnelShift(w[b][i], w[b][i + 1], 8 * past[b]) ^ flip_;
        thread.StoreShared(
            to, Pixels{{w[b][0], FunnelShift(w[b][0], w[b][1], 24), FunnelShift(w[b][1], w[b][2], 16), w[b][2] >> 8}});
        to += Place(patch_.step);
      }
    }
  }

  // Of any channels, and where some of the four are padding.
  FUSELAGE_DEVICE void FetchBytes(Thread thread, int x, int line, uint32_t to) const {
    FUSELAGE_NO_UNROLL
    for (; line < patch_.height; line += patch_.step) {
      const bool inside = static_cast<unsigned>(first_y_ + line) < static_cast<unsigned>(p_.in_height);
      const uint8_t* from = image_ + (int64_t{first_y_ + line} * p_.in_width + x) * p_.in_channels;
      Pixels pixels = {};
      FUSELAGE_NO_UNROLL
      for (int k = 0; k < 4; ++k) {
        uint32_t pixel = padding_;
        if (inside && static_cast<unsigned>(x + k) < static_cast<unsigned>(p_.in_width)) {
          pixel = flip_;
          FUSELAGE_UNROLL
          for (int c = 0; c < 4; ++c) {
            if (c < p_.in_channels) pixel ^= uint32_t{thread.Load(from + c)} << 8 * c;
          }
        }
        from += p_.in_channels;
        pixels = {{pixels.values[1], pixels.values[2], pixels.values[3], pixel}};
      }
      thread.StoreShared(to + Place(line), pixels);
    }
  }

  const Params& p_;
  const StemPatch& patch_;
  const int first_y_, first_x_;
  const uint32_t flip_, padding_;
  const uint8_t* image_;
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_PATCH_H_
