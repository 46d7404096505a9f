// Match costs of all pairs of two sequences of vectors: a matrix product tiled for registers, or the same loop with
// squared differences instead of products. Norms, roots and clipping are applied before a cost is stored.
//
// Squared differences are about as fast as products, since processors add and multiply in parallel. And unlike |z|² +
// |x|² − 2 z·x, they do not cancel where z ≈ x.
//
// Each cost is one chain of fused multiply-adds over the features, in order. So it does not depend on its neighbors: it
// is the same in whichever part of the matrix it is computed.
#include "costs.hpp"

#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T, Metric metric>
class Costs {
  static constexpr int W = Register<T>::W;

 public:
  static constexpr int rows = 4, vectors = DROPDTW_BYTES == 64 ? 4 : 2;  // a tile, whose sums stay in registers

  Costs(const CostsProblem<T>& problem, T* panel) : problem_(problem), panel_(panel) {}

  void columns(int from, int to) {
    for (; from + vectors * W <= to; from += vectors * W) panel<vectors>(from, vectors * W);
    for (; from < to; from += W) panel<1>(from, smaller(W, to - from));
  }

 private:
  // Computes columns [from, from + count), in n vectors.
  template <int n>
  void panel(int from, int count) {
    pack<n>(from, count);
    int i = 0;
    for (; i + rows <= problem_.K; i += rows) tile<rows, n>(i, from, count);
    for (; i < problem_.K; ++i) tile<1, n>(i, from, count);
  }

  // Packs x so that feature f of all columns of the panel is contiguous.
  template <int n>
  DROPDTW_FLAT void pack(int from, int count) {
    const int d = problem_.d;
    const T* const x = problem_.x + std::size_t(from) * d;
    int f = 0;
    for (; count == n * W && f + W <= d; f += W)
      for (int c = 0; c < n; ++c)
        transpose(x + std::size_t(c) * W * d + f, d, panel_ + std::size_t(f) * n * W + c * W, n * W);
    for (; f < d; ++f)
      for (int c = 0; c < n * W; ++c) panel_[std::size_t(f) * n * W + c] = c < count ? x[std::size_t(c) * d + f] : T(0);
    if (problem_.scale != nullptr)
      for (int c = 0; c < n * W; ++c) panel_[std::size_t(d) * n * W + c] = c < count ? problem_.scale[from + c] : T(1);
  }

  template <int r, int n>
  DROPDTW_FLAT void tile(int i, int from, int count) {
    Vec<T> sum[r][n];
    unrolled<r>([&](auto a) DROPDTW_INLINE_LAMBDA {
      unrolled<n>([&](auto b) DROPDTW_INLINE_LAMBDA { sum[a][b] = Vec<T>{}; });
    });
    const int d = problem_.d;
    const T *const z = problem_.z + std::size_t(i) * d, *x = panel_;
    for (int f = 0; f < d; ++f, x += n * W)
      unrolled<r>([&](auto a) DROPDTW_INLINE_LAMBDA {
        const Vec<T> v = all<T>(z[std::size_t(a) * d + f]);
        unrolled<n>([&](auto b) DROPDTW_INLINE_LAMBDA {
          const Vec<T> other = load(x + b * W);
          if constexpr (metric == Metric::cosine) {
            sum[a][b] += v * other;
          } else {
            const Vec<T> gap = v - other;
            sum[a][b] += gap * gap;
          }
        });
      });
    T* const out = problem_.out + std::size_t(i) * problem_.N + from;
    unrolled<r>([&](auto a) DROPDTW_INLINE_LAMBDA {
      unrolled<n>([&](auto b) DROPDTW_INLINE_LAMBDA {
        put(out + std::size_t(a) * problem_.N + b * W, finished(sum[a][b], x + b * W), n == 1 ? count : W);
      });
    });
  }

  // Turns the sum over the features into the cost; `scale` holds the scales of its columns.
  DROPDTW_INLINE Vec<T> finished(Vec<T> sum, const T* scale) const {
    if constexpr (metric == Metric::euclidean) sum = root_of<T>(sum);
    if constexpr (metric == Metric::cosine) {
      if (problem_.scale != nullptr) sum *= load(scale);
      sum = T(1) - sum;
      sum = sum < T(0) ? Vec<T>{} : sum;
      sum = sum > T(2) ? all<T>(2) : sum;
    }
    return sum;
  }

  static DROPDTW_INLINE void put(T* out, Vec<T> v, int count) {
    if (count == W)
      store(out, v);
    else
      std::memcpy(out, &v, count * sizeof(T));
  }

  const CostsProblem<T> problem_;
  T* const panel_;
};

template <class T>
void columns(const CostsProblem<T>& problem, int from, int to, T* panel) {
  switch (problem.metric) {
    case Metric::cosine: return Costs<T, Metric::cosine>(problem, panel).columns(from, to);
    case Metric::euclidean: return Costs<T, Metric::euclidean>(problem, panel).columns(from, to);
    default: return Costs<T, Metric::sqeuclidean>(problem, panel).columns(from, to);
  }
}

// The Euclidean length of each of n rows of d numbers.
template <class T>
DROPDTW_FLAT void lengths(const T* rows, std::size_t n, int d, T* out) {
  constexpr int W = Register<T>::W;
  for (std::size_t i = 0; i < n; ++i, rows += d) {
    Vec<T> squares{};
    int f = 0;
    for (; f + W <= d; f += W) squares += load(rows + f) * load(rows + f);
    T sum = 0;
    for (; f < d; ++f) sum += rows[f] * rows[f];
    for (int k = 0; k < W; ++k) sum += squares[k];
    out[i] = sizeof(T) == 4 ? __builtin_sqrtf(sum) : __builtin_sqrt(sum);
  }
}

void get(CostsKernel<DROPDTW_REAL>& found) {
  using Some = Costs<DROPDTW_REAL, Metric::cosine>;
  found = {Some::vectors * Register<DROPDTW_REAL>::W, &columns<DROPDTW_REAL>, &lengths<DROPDTW_REAL>};
}

}  // namespace dropdtw::DROPDTW_ISA
