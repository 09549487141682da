// Boxes of images, as ONNX's NonMaxSuppression has them: float32, one rounding an operation.
#ifndef FUSELAGE_IR_BASE_BOXES_H_
#define FUSELAGE_IR_BASE_BOXES_H_

namespace fuselage {

struct Box {
  float x0, y0, x1, y1;  // x0 <= x1 and y0 <= y1, but for NaN.

  float area() const { return (x1 - x0) * (y1 - y0); }
};

// From four numbers: two opposite corners, or the center, the width and the height.
inline Box BoxOf(const float* values, bool center) {
  if (center) {
    const float half_width = values[2] / 2, half_height = values[3] / 2;
    return {values[0] - half_width, values[1] - half_height, values[0] + half_width, values[1] + half_height};
  }
  const float a = values[0], b = values[1], c = values[2], d = values[3];
  return {a < c ? a : c, b < d ? b : d, a < c ? c : a, b < d ? d : b};
}

// Whether what two boxes share, over what they cover together, is more than `threshold`; no where either has no area.
inline bool Overlap(const Box& a, const Box& b, float threshold) {
  const float x0 = a.x0 > b.x0 ? a.x0 : b.x0, x1 = a.x1 < b.x1 ? a.x1 : b.x1;
  if (x1 <= x0) return false;
  const float y0 = a.y0 > b.y0 ? a.y0 : b.y0, y1 = a.y1 < b.y1 ? a.y1 : b.y1;
  if (y1 <= y0) return false;
  const float shared = (x1 - x0) * (y1 - y0), covered = a.area() + b.area() - shared;
  if (shared <= 0 || a.area() <= 0 || b.area() <= 0 || covered <= 0) return false;
  return shared / covered > threshold;
}

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_BOXES_H_
