// Attention, rotary and embedding operators of ai.onnx and com.microsoft against loops that are written out.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fuselage::onnx {
namespace {

using Ints = std::vector<int64_t>;

constexpr char kMicrosoft[] = "com.microsoft";

// Rows [N, S, heads * D] of queries, keys and values, and what the operators may do to the scores.
struct Rows {
  Tensor q, k, v;
  int64_t heads = 1, key_heads = 1;
  double scale = 0, softcap = 0;  // 0: 1 / sqrt(D), none.
  std::function<double(int64_t n, int64_t head, int64_t i, int64_t j)> bias = [](auto...) { return 0.0; };
  std::function<bool(int64_t n, int64_t i, int64_t j)> allowed = [](auto...) { return true; };
};

std::vector<double> Attend(const Rows& rows) {
  const int64_t batch = rows.q.dim(0), s = rows.q.dim(1), t = rows.k.dim(1);
  const int64_t d = rows.q.dim(2) / rows.heads, e = rows.v.dim(2) / rows.key_heads;
  const double scale = rows.scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : rows.scale;
  const auto at = [](const Tensor& x, int64_t n, int64_t i, int64_t column) {
    return x.At((n * x.dim(1) + i) * x.dim(2) + column);
  };
  std::vector<double> result(batch * s * rows.heads * e, 0);
  for (int64_t row = 0; row < batch * s * rows.heads; ++row) {
    const int64_t head = row % rows.heads, i = row / rows.heads % s, n = row / rows.heads / s;
    const int64_t key_head = head / (rows.heads / rows.key_heads);
    std::vector<double> weights(t, 0);
    double sum = 0;
    for (int64_t j = 0; j < t; ++j) {
      if (!rows.allowed(n, i, j)) continue;
      double score = 0;
      for (int64_t c = 0; c < d; ++c) score += at(rows.q, n, i, head * d + c) * at(rows.k, n, j, key_head * d + c);
      score *= scale;
      if (rows.softcap != 0) score = rows.softcap * std::tanh(score / rows.softcap);
      sum += weights[j] = std::exp(score + rows.bias(n, head, i, j));
    }
    for (int64_t j = 0; j < t && sum > 0; ++j) {
      for (int64_t c = 0; c < e; ++c) result[row * e + c] += weights[j] / sum * at(rows.v, n, j, key_head * e + c);
    }
  }
  return result;
}

void ExpectNear(const Tensor& found, const std::vector<double>& wanted) {
  EXPECT_THAT(ToDoubles(found), ::testing::Pointwise(::testing::DoubleNear(2e-6), wanted));
}

// Inputs q, k and v.
ModelBuilder Model(int opset, const Rows& rows) {
  ModelBuilder model(opset);
  const auto dims = [](const Tensor& x) { return std::vector<Dim>(x.shape().begin(), x.shape().end()); };
  return model.Input("q", dims(rows.q)).Input("k", dims(rows.k)).Input("v", dims(rows.v)).Output("y");
}

Rows Grouped() {
  Rows rows{Seeded({2, 3, 12}, 1), Seeded({2, 5, 6}, 2), Seeded({2, 5, 8}, 3)};
  rows.heads = 4;
  rows.key_heads = 2;
  return rows;
}

TEST(Attention, GroupedHeadsScaleAndCap) {
  Rows rows = Grouped();
  ModelBuilder model = Model(23, rows);
  model.Node("Attention", {"q", "k", "v"}, {"y"}).Int("q_num_heads", 4).Int("kv_num_heads", 2);
  ExpectNear(Outputs(model, {rows.q, rows.k, rows.v})[0], Attend(rows));
  rows.scale = 0.25;
  rows.softcap = 0.5;
  ExpectNear(Outputs(model.Float("scale", 0.25f).Float("softcap", 0.5f), {rows.q, rows.k, rows.v})[0], Attend(rows));
}

TEST(Attention, CausalBehindACache) {
  Rows rows = Grouped();
  ModelBuilder model = Model(23, rows);
  const Tensor key = Seeded({2, 2, 2, 3}, 4), value = Seeded({2, 2, 2, 4}, 5);
  model.Initializer("pk", key).Initializer("pv", value).Output("all_k").Output("all_v");
  model.Node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "all_k", "all_v"}).Int("is_causal", 1);
  model.Int("q_num_heads", 4).Int("kv_num_heads", 2);
  const std::vector<Tensor> found = Outputs(model, {rows.q, rows.k, rows.v});
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[1].shape(), (Shape{2, 2, 7, 3}));
  EXPECT_EQ(found[1].At(0), key.At(0));
  EXPECT_EQ(found[2].At(2 * 4), rows.v.At(0));  // Behind the two of the cache.
  // The cache as rows in front of the others.
  const auto with_past = [](const Tensor& past, const Tensor& x) {
    const int64_t size = past.dim(3), heads = past.dim(1), before = past.dim(2), all = before + x.dim(1);
    Tensor result(DType::kF32, {x.dim(0), all, x.dim(2)});
    for (int64_t i = 0; i < result.num_elements(); ++i) {
      const int64_t c = i % x.dim(2), j = i / x.dim(2) % all, n = i / x.dim(2) / all;
      result.Set(i, j < before ? past.At(((n * heads + c / size) * before + j) * size + c % size)
                               : x.At((n * x.dim(1) + j - before) * x.dim(2) + c));
    }
    return result;
  };
  rows.k = with_past(key, rows.k);
  rows.v = with_past(value, rows.v);
  rows.allowed = [](int64_t, int64_t i, int64_t j) { return j <= i + 2; };
  ExpectNear(found[0], Attend(rows));
}

// A query that may look at no key gives zeros, and a mask may be shorter than the keys.
TEST(Attention, MasksOfBools) {
  Rows rows = Grouped();
  ModelBuilder model = Model(23, rows);
  model.Input("mask", {3, 4}, DType::kBool);
  model.Node("Attention", {"q", "k", "v", "mask"}, {"y"}).Int("q_num_heads", 4).Int("kv_num_heads", 2);
  const Tensor mask =
      Tensor::Of<bool>({3, 4}, {true, false, true, true, false, false, false, false, true, true, true, true});
  rows.allowed = [&](int64_t, int64_t i, int64_t j) { return j < 4 && mask.At(i * 4 + j) != 0; };
  ExpectNear(Outputs(model, {rows.q, rows.k, rows.v, mask})[0], Attend(rows));
}

TEST(Attention, MasksOfFloatsByHead) {
  Rows rows = Grouped();
  ModelBuilder model = Model(23, rows);
  model.Input("mask", {4, 3, 5});
  model.Node("Attention", {"q", "k", "v", "mask"}, {"y"}).Int("q_num_heads", 4).Int("kv_num_heads", 2);
  const Tensor mask = Seeded({4, 3, 5}, 7);
  rows.bias = [&](int64_t, int64_t head, int64_t i, int64_t j) { return mask.At((head * 3 + i) * 5 + j); };
  ExpectNear(Outputs(model, {rows.q, rows.k, rows.v, mask})[0], Attend(rows));
}

TEST(Attention, Errors) {
  const Rows rows = Grouped();
  const auto model = [&](std::vector<std::string> inputs, int64_t heads) {
    ModelBuilder made = Model(23, rows);
    made.Input("p", {2, 2, 2, 3}).Input("wide", {3, 6});
    return made.Node("Attention", std::move(inputs), {"y"}, "a").Int("q_num_heads", heads).Int("kv_num_heads", 2);
  };
  ExpectError(model({"q", "k", "v"}, 5), "found f32[2,3,12] for 5 heads, wanted [N, S, a multiple of the heads]");
  ExpectError(model({"q", "k", "v"}, 3), "wanted [N, heads, S, D], [N, K, T, D] and [N, K, T, E]");
  ExpectError(model({"q", "k", "v", "", "p"}, 4), "found one of past_key and past_value");
  ExpectError(model({"q", "k", "v", "wide"}, 4), "input 3: found f32[3,6], wanted a mask of at most 5 keys");
  ExpectError(model({"q", "k", "v"}, 4).Int("softmax_precision", 7), "'softmax_precision': found i64, wanted a float");
}

// --- com.microsoft.

TEST(MultiHeadAttention, BiasesAndKeyMask) {
  Rows rows{Seeded({2, 3, 6}, 1), Seeded({2, 4, 6}, 2), Seeded({2, 4, 4}, 3)};
  rows.heads = rows.key_heads = 2;
  ModelBuilder model = Model(13, rows);
  const Tensor bias = Seeded({16}, 4), scores = Seeded({1, 2, 3, 4}, 5);
  const Tensor mask = Tensor::Of<int32_t>({2, 4}, {1, 1, 0, 1, 0, 1, 1, 1});
  model.Initializer("bias", bias).Initializer("scores", scores).Input("mask", {2, 4}, DType::kI32);
  model.Node("MultiHeadAttention", {"q", "k", "v", "bias", "mask", "scores"}, {"y"}).Int("num_heads", 2);
  const std::vector<Tensor> inputs = {rows.q, rows.k, rows.v, mask};
  int64_t begin = 0;
  for (Tensor* x : {&rows.q, &rows.k, &rows.v}) {
    for (int64_t i = 0; i < x->num_elements(); ++i) x->Set(i, x->At(i) + bias.At(begin + i % x->dim(2)));
    begin += x->dim(2);
  }
  rows.bias = [&](int64_t, int64_t head, int64_t i, int64_t j) { return scores.At((head * 3 + i) * 4 + j); };
  rows.allowed = [&](int64_t n, int64_t, int64_t j) { return mask.At(n * 4 + j) != 0; };
  ExpectNear(Outputs(model.Domain(kMicrosoft), inputs)[0], Attend(rows));
}

TEST(MultiHeadAttention, PackedAndCached) {
  Rows rows{Seeded({1, 3, 6}, 1), Seeded({1, 3, 6}, 2), Seeded({1, 3, 6}, 3)};
  rows.heads = rows.key_heads = 2;
  Tensor packed(DType::kF32, {1, 3, 2, 3, 3});  // [N, S, heads, of three, D]
  const Tensor* parts[] = {&rows.q, &rows.k, &rows.v};
  for (int64_t i = 0; i < packed.num_elements(); ++i) {
    packed.Set(i, parts[i / 3 % 3]->At(i / 18 * 6 + i / 9 % 2 * 3 + i % 3));
  }
  ModelBuilder model(13);
  model.Input("x", {1, 3, 2, 3, 3}).Output("y").Node("MultiHeadAttention", {"x"}, {"y"}).Int("num_heads", 2);
  rows.allowed = [](int64_t, int64_t i, int64_t j) { return j <= i; };
  ExpectNear(Outputs(model.Int("unidirectional", 1).Domain(kMicrosoft), {packed})[0], Attend(rows));

  ModelBuilder cached = Model(13, rows);
  cached.Initializer("past", Seeded({1, 2, 2, 3}, 4)).Output("all_k").Output("all_v");
  cached.Node("MultiHeadAttention", {"q", "k", "v", "", "", "", "past", "past"}, {"y", "all_k", "all_v"}, "a");
  const std::vector<Tensor> found = Outputs(cached.Int("num_heads", 2).Domain(kMicrosoft), {rows.q, rows.k, rows.v});
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[1].shape(), (Shape{1, 2, 5, 3}));
  EXPECT_EQ(found[1].At(2 * 3), rows.k.At(0));
  cached.Initializer("cache", I64({0})).last_node().add_input("cache");
  ExpectError(cached, "node 'a' (MultiHeadAttention): input 8: found a shared cache, wanted none");
}

TEST(MicrosoftAttention, OneProductForAll) {
  for (const bool lengths : {false, true}) {
    const Tensor x = Seeded({2, 3, 4}, 1), w = Seeded({4, 14}, 2), b = Seeded({14}, 3);
    ModelBuilder model(13);
    model.Input("x", {2, 3, 4}).Output("y").Initializer("w", w).Initializer("b", b);
    const Tensor mask = lengths ? Tensor::Of<int32_t>({2}, {3, 2}) : Tensor::Of<int32_t>({2, 3}, {1, 1, 1, 1, 1, 0});
    model.Initializer("mask", mask);
    model.Node("Attention", {"x", "w", "b", "mask"}, {"y"}).Int("num_heads", 2).Ints("qkv_hidden_sizes", {4, 4, 6});
    const auto part = [&](int64_t begin, int64_t size) {
      Tensor rows(DType::kF32, {2, 3, size});
      for (int64_t i = 0; i < rows.num_elements(); ++i) {
        double sum = b.At(begin + i % size);
        for (int64_t c = 0; c < 4; ++c) sum += x.At(i / size * 4 + c) * w.At(c * 14 + begin + i % size);
        rows.Set(i, sum);
      }
      return rows;
    };
    Rows rows{part(0, 4), part(4, 4), part(8, 6)};
    rows.heads = rows.key_heads = 2;
    rows.allowed = [](int64_t n, int64_t i, int64_t j) { return j <= i && (n == 0 || j < 2); };
    ExpectNear(Outputs(model.Int("unidirectional", 1).Domain(kMicrosoft), {x})[0], Attend(rows));
    ExpectError(model.Int("do_rotary", 1), "found do_rotary = 1, wanted 0");
  }
}

// --- Rotary embedding.

// Element `c` of a head whose first 2 * half elements are turned by the angle of each pair.
double Turned(const std::function<double(int64_t)>& x, int64_t c, int64_t half, bool pairs,
              const std::function<double(int64_t)>& angle) {
  if (c >= 2 * half) return x(c);
  const int64_t k = pairs ? c / 2 : c % half;
  const bool second = pairs ? c % 2 == 1 : c >= half;
  const double a = x(pairs ? 2 * k : k), b = x(pairs ? 2 * k + 1 : k + half);
  return second ? a * std::sin(angle(k)) + b * std::cos(angle(k)) : a * std::cos(angle(k)) - b * std::sin(angle(k));
}

// Heads of 6, of which 4 are turned, as rows [N, S, heads * D] and by head [N, heads, S, D].
TEST(RotaryEmbedding, BothFormsOfBothDomains) {
  const int64_t half = 2, places = 8, heads = 2, size = 6, length = 3;
  Tensor cosines(DType::kF32, {places, half}), sines(DType::kF32, {places, half});
  const auto angle = [&](int64_t place, int64_t k) { return 0.3 * static_cast<double>(place * (k + 1)); };
  for (int64_t i = 0; i < places * half; ++i) {
    cosines.Set(i, std::cos(angle(i / half, i % half)));
    sines.Set(i, std::sin(angle(i / half, i % half)));
  }
  for (const bool microsoft : {false, true}) {
    for (const bool pairs : {false, true}) {
      for (const bool by_head : {false, true}) {
        const Shape shape = by_head ? Shape{1, heads, length, size} : Shape{1, length, heads * size};
        ModelBuilder model(microsoft ? 13 : 23);
        model.Input("x", std::vector<Dim>(shape.begin(), shape.end())).Output("y");
        model.Initializer("cos", cosines).Initializer("sin", sines);
        model.Initializer("places", microsoft ? I64({2}) : Tensor::Of<int64_t>({1, 3}, {2, 3, 4}));
        if (microsoft) {
          model.Node("RotaryEmbedding", {"x", "places", "cos", "sin"}, {"y"}).Domain(kMicrosoft);
        } else {
          model.Node("RotaryEmbedding", {"x", "cos", "sin", "places"}, {"y"});
        }
        model.Int("interleaved", pairs).Int("num_heads", heads).Int("rotary_embedding_dim", 2 * half);
        const Tensor x = Seeded(shape, 9);
        std::vector<double> wanted;
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          const int64_t place = by_head ? i / size % length : i / (heads * size);
          wanted.push_back(Turned([&](int64_t c) { return x.At(i / size * size + c); }, i % size, half, pairs,
                                  [&](int64_t k) { return angle(2 + place, k); }));
        }
        ExpectNear(Outputs(model, {x})[0], wanted);
      }
    }
  }
}

TEST(RotaryEmbedding, Errors) {
  ModelBuilder model(23);
  model.Input("x", {1, 3, 12}).Output("y").Initializer("cos", Seeded({8, 2}, 1)).Input("places", {1, 3}, DType::kI64);
  model.Node("RotaryEmbedding", {"x", "cos", "cos", "places"}, {"y"}).Int("num_heads", 2);
  ExpectError(model, "found cosines f32[8,2] to turn 6 elements of each head, wanted half as many");
  model.last_node().mutable_input()->RemoveLast();
  ExpectError(model, "wanted [N, S, half a head]");
}

// --- com.microsoft's GroupQueryAttention: a language model's tokens behind its cache.

struct Tokens {
  int64_t sequences, queries, capacity;
  std::vector<int32_t> lengths;  // Of each sequence, with its past; the first is the longest.
  int window = -1;
  bool packed = false, rotary = false, biased = false;
};

// The operator's results against loops over each sequence: what it attends to, and what it leaves in the cache.
void ExpectGroupQuery(const Tokens& t) {
  constexpr int64_t kHeads = 4, kKeyHeads = 2, kSize = 4, kPlaces = 16;
  const int64_t n = t.sequences, s = t.queries, total = t.lengths[0], after = std::max(t.capacity, total);
  ModelBuilder model(13);
  const Tensor q = Seeded({n, s, kHeads * kSize}, 1), k = Seeded({n, s, kKeyHeads * kSize}, 2);
  const Tensor v = Seeded({n, s, kKeyHeads * kSize}, 3), bias = Seeded({1, kHeads, s, total}, 4);
  const Shape cache = {n, kKeyHeads, t.capacity, kSize};
  const Tensor past_k = Seeded(cache, 5), past_v = Seeded(cache, 6);
  Tensor cosines(DType::kF32, {kPlaces, kSize / 2}), sines(DType::kF32, {kPlaces, kSize / 2});
  const auto angle = [](int64_t place, int64_t i) { return 0.3 * static_cast<double>(place * (i + 1)); };
  for (int64_t i = 0; i < cosines.num_elements(); ++i) {
    cosines.Set(i, std::cos(angle(i * 2 / kSize, i % (kSize / 2))));
    sines.Set(i, std::sin(angle(i * 2 / kSize, i % (kSize / 2))));
  }
  Tensor last(DType::kI32, {n, 1});
  for (int64_t i = 0; i < n; ++i) last.Set(i, t.lengths[i] - 1);

  std::vector<Tensor> inputs;
  const auto input = [&](const std::string& name, const Tensor& x) {
    model.Input(name, std::vector<Dim>(x.shape().begin(), x.shape().end()), x.dtype());
    inputs.push_back(x);
  };
  const auto at = [](const Tensor& x, int64_t sequence, int64_t i, int64_t c) {
    return x.At((sequence * x.dim(1) + i) * x.dim(2) + c);
  };
  if (t.packed) {
    Tensor all(DType::kF32, {n, s, (kHeads + 2 * kKeyHeads) * kSize});
    for (int64_t i = 0; i < all.num_elements(); ++i) {
      const int64_t c = i % all.dim(2), row = i / all.dim(2), b = row / s, own = c - kHeads * kSize;
      const bool is_key = own < kKeyHeads * kSize;
      all.Set(i, own < 0  ? at(q, b, row % s, c)
                 : is_key ? at(k, b, row % s, own)
                          : at(v, b, row % s, own - kKeyHeads * kSize));
    }
    input("q", all);
  } else {
    input("q", q), input("k", k), input("v", v);
  }
  input("past_k", past_k), input("past_v", past_v), input("last", last);
  if (t.biased) input("bias", bias);
  model.Initializer("total", Tensor::Of<int32_t>({}, {static_cast<int32_t>(total)}));
  model.Initializer("cos", cosines).Initializer("sin", sines);
  model.Node("GroupQueryAttention",
             {"q", t.packed ? "" : "k", t.packed ? "" : "v", "past_k", "past_v", "last", "total", "cos", "sin", "",
              t.biased ? "bias" : ""},
             {"y", "all_k", "all_v"});
  model.Int("num_heads", kHeads).Int("kv_num_heads", kKeyHeads).Int("local_window_size", t.window);
  model.Int("do_rotary", t.rotary).Domain(kMicrosoft).Output("y").Output("all_k").Output("all_v");
  const std::vector<Tensor> found = Outputs(model, inputs);
  ASSERT_EQ(found.size(), 3);
  ASSERT_EQ(found[1].shape(), (Shape{n, kKeyHeads, after, kSize}));

  // A head's rows at the places of its tokens.
  const auto turned = [&](const Tensor& x, int64_t b, int64_t i, int64_t head, int64_t place) {
    std::vector<double> row;
    const auto element = [&](int64_t c) { return at(x, b, i, head * kSize + c); };
    for (int64_t c = 0; c < kSize; ++c) {
      row.push_back(t.rotary ? Turned(element, c, kSize / 2, false, [&](int64_t j) { return angle(place, j); })
                             : element(c));
    }
    return row;
  };
  for (int64_t b = 0; b < n; ++b) {
    const int64_t length = t.lengths[b], past = s == total ? 0 : length - s;
    Rows rows{Tensor(DType::kF32, {1, s, kHeads * kSize}), Tensor(DType::kF32, {1, past + s, kKeyHeads * kSize}),
              Tensor(DType::kF32, {1, past + s, kKeyHeads * kSize})};
    rows.heads = kHeads, rows.key_heads = kKeyHeads;
    for (int64_t i = 0; i < rows.q.num_elements(); ++i) {
      const int64_t row = i / (kHeads * kSize), head = i / kSize % kHeads;
      rows.q.Set(i, turned(q, b, row, head, past + row)[i % kSize]);
    }
    for (int64_t i = 0; i < rows.k.num_elements(); ++i) {
      const int64_t place = i / (kKeyHeads * kSize), head = i / kSize % kKeyHeads, c = i % kSize;
      const int64_t old = ((b * kKeyHeads + head) * t.capacity + place) * kSize + c;
      rows.k.Set(i, place < past ? past_k.At(old) : turned(k, b, place - past, head, place)[c]);
      rows.v.Set(i, place < past ? past_v.At(old) : at(v, b, place - past, head * kSize + c));
      const int64_t now = ((b * kKeyHeads + head) * after + place) * kSize + c;
      ASSERT_NEAR(found[1].At(now), rows.k.At(i), 1e-6) << "key " << place << " of sequence " << b;
      ASSERT_EQ(found[2].At(now), rows.v.At(i)) << "value " << place << " of sequence " << b;
    }
    rows.allowed = [&](int64_t, int64_t i, int64_t j) {
      return j <= past + i && (t.window < 0 || j > past + i - t.window);
    };
    if (t.biased) {
      rows.bias = [&](int64_t, int64_t head, int64_t i, int64_t j) { return bias.At((head * s + i) * total + j); };
    }
    const std::vector<double> all = ToDoubles(found[0]), wanted = Attend(rows);
    const std::vector<double> own(all.begin() + b * wanted.size(), all.begin() + (b + 1) * wanted.size());
    EXPECT_THAT(own, ::testing::Pointwise(::testing::DoubleNear(2e-6), wanted)) << "sequence " << b;
  }
}

TEST(GroupQueryAttention, OneSequence) {
  for (const bool packed : {false, true}) {
    for (const int window : {-1, 2}) {
      ExpectGroupQuery({1, 5, 0, {5}, window, packed, /*rotary=*/true, /*biased=*/packed});   // A prompt,
      ExpectGroupQuery({1, 1, 5, {6}, window, packed, /*rotary=*/true});                      // the token behind it,
      ExpectGroupQuery({1, 3, 5, {8}, window, packed, /*rotary=*/true, /*biased=*/!packed});  // and some more;
      ExpectGroupQuery({1, 2, 9, {6}, window, packed});  // a cache that is not full.
      ExpectGroupQuery({1, 4, 9, {4}, window, packed});
    }
  }
}

// Of several each has a length of its own, but for prompts, which are as long as the longest.
TEST(GroupQueryAttention, SeveralSequences) {
  for (const int window : {-1, 2}) {
    ExpectGroupQuery({3, 4, 0, {4, 2, 3}, window, /*packed=*/true, /*rotary=*/true});
    ExpectGroupQuery({3, 1, 5, {6, 2, 4}, window, /*packed=*/true, /*rotary=*/true, /*biased=*/true});
    ExpectGroupQuery({2, 1, 9, {6, 6}, window, /*packed=*/false, /*rotary=*/true});
    ExpectGroupQuery({2, 2, 9, {7, 3}, window});
  }
}

TEST(GroupQueryAttention, Errors) {
  const auto made = [](int64_t total, int64_t heads) {
    ModelBuilder model(13);
    model.Input("q", {2, 3, 16}).Input("past", {2, 2, 5, 4}).Input("last", {2}, DType::kI64).Output("y");
    model.Initializer("total", Tensor::Of<int32_t>({}, {static_cast<int32_t>(total)}));
    model.Node("GroupQueryAttention", {"q", "", "", "past", "past", "last", "total"}, {"y"}, "a");
    return model.Domain(kMicrosoft).Int("num_heads", heads).Int("kv_num_heads", 2);
  };
  ExpectError(made(3, 3), "found num_heads = 3 and kv_num_heads = 2, wanted a multiple of the latter");
  ExpectError(made(9, 4), "input 6: found 9 tokens in all, wanted 3 and at most 5 of the cache");
  ExpectError(made(2, 4), "input 6: found 2 tokens in all, wanted 3 and at most 5 of the cache");
  ExpectError(made(8, 4), "input 5: found i64[2], wanted an i32 for each of 2 sequences");
  ExpectError(made(3, 6), "found 16 channels for 10 heads in all");
  ModelBuilder flat = made(3, 4);
  flat.Input("flat", {5}).last_node().set_input(3, "flat");
  ExpectError(flat, "input 3: found f32[5], wanted both caches [N, kv_num_heads, P, D], or none");
  flat.last_node().set_input(3, "");
  ExpectError(flat, "input 4: found f32[2,2,5,4], wanted both caches [N, kv_num_heads, P, D], or none");
  ExpectError(made(3, 4).Int("do_rotary", 1), "found do_rotary = 1 without cos_cache and sin_cache");
  ExpectError(made(3, 4).Int("smooth_softmax", 1), "found smooth_softmax or qk_output, wanted neither");
}

// --- Embeddings.

TEST(EmbedLayerNormalization, SumsThreeTables) {
  const auto made = [] {
    ModelBuilder model(17);
    model.Input("ids", {1, 3}, DType::kI32).Input("kinds", {1, 3}, DType::kI32).Output("y");
    model.Initializer("words", Seeded({7, 4}, 1)).Initializer("places", Seeded({5, 4}, 2));
    model.Initializer("segments", Seeded({2, 4}, 3)).Initializer("gamma", Seeded({4}, 4));
    return model.Initializer("beta", Seeded({4}, 5));
  };
  ModelBuilder model = made(), wanted = made();
  model.Initializer("mask", Tensor::Of<int32_t>({1, 3}, {1, 1, 0})).Output("count", DType::kI32).Output("sum");
  model.Node("EmbedLayerNormalization", {"ids", "kinds", "words", "places", "segments", "gamma", "beta", "mask"},
             {"y", "count", "sum"});
  model.Float("epsilon", 1e-5f).Domain(kMicrosoft);
  wanted.Initializer("three", I64({0, 1, 2})).Output("sum");
  wanted.Node("Gather", {"words", "ids"}, {"w"}).Node("Gather", {"places", "three"}, {"p"});
  wanted.Node("Gather", {"segments", "kinds"}, {"s"}).Node("Add", {"w", "p"}, {"wp"}).Node("Add", {"wp", "s"}, {"sum"});
  wanted.Node("LayerNormalization", {"sum", "gamma", "beta"}, {"y"}).Float("epsilon", 1e-5f);
  const std::vector<Tensor> inputs = {Tensor::Of<int32_t>({1, 3}, {6, 0, 3}), Tensor::Of<int32_t>({1, 3}, {0, 1, 1})};
  const std::vector<Tensor> found = Outputs(model, inputs), expected = Outputs(wanted, inputs);
  ASSERT_EQ(found.size(), 3);
  ExpectNear(found[0], ToDoubles(expected[0]));
  EXPECT_EQ(ToDoubles(found[1]), (std::vector<double>{2}));
  ExpectNear(found[2], ToDoubles(expected[1]));
}

}  // namespace
}  // namespace fuselage::onnx
