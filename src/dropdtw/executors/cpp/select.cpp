// The two numbers of neighboring ranks that a percentile lies between; see Kernels::select.
//
// A sample gives bounds that are likely to contain them, so one pass over all numbers leaves a few percent. Among
// these, and in the sample, a number is found by repeatedly keeping only those on its side of a pivot. All passes are
// free of branches that depend on numbers, because processors would predict every other one wrongly.
#include "select.hpp"

#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
DROPDTW_INLINE unsigned under(T a, T b) {
  return a < b;
}
// Whether v is within these bounds; counts it if it is below them.
template <class T>
DROPDTW_INLINE unsigned within(T v, T low, T high, std::int64_t& below) {
  below += v < low;
  return (v >= low) & (v <= high);
}
#if defined(__AVX512F__)
// The lanes in which a < b, as bits.
template <class T>
DROPDTW_INLINE unsigned lanes_under(Vec<T> a, Vec<T> b) {
  if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
  if constexpr (sizeof(T) == 8) return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ);
}
template <class T>
DROPDTW_INLINE unsigned under(Vec<T> a, T b) {
  return lanes_under<T>(a, all<T>(b));
}
template <class T>
DROPDTW_INLINE unsigned under(T a, Vec<T> b) {
  return lanes_under<T>(all<T>(a), b);
}
template <class T>
DROPDTW_INLINE unsigned within(Vec<T> v, T low, T high, std::int64_t& below) {
  unsigned reaches, inside;
  if constexpr (sizeof(T) == 4) {
    reaches = _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(low), _CMP_GE_OQ);
    inside = _mm512_mask_cmp_ps_mask(__mmask16(reaches), (__m512)v, _mm512_set1_ps(high), _CMP_LE_OQ);
  } else {
    reaches = _mm512_cmp_pd_mask((__m512d)v, _mm512_set1_pd(low), _CMP_GE_OQ);
    inside = _mm512_mask_cmp_pd_mask(__mmask8(reaches), (__m512d)v, _mm512_set1_pd(high), _CMP_LE_OQ);
  }
  below += Register<T>::W - __builtin_popcount(reaches);
  return inside;
}
DROPDTW_INLINE void squeeze(float* to, unsigned lanes, Vec<float> v) {
  _mm512_storeu_ps(to, _mm512_maskz_compress_ps(__mmask16(lanes), (__m512)v));
}
DROPDTW_INLINE void squeeze(double* to, unsigned lanes, Vec<double> v) {
  _mm512_storeu_pd(to, _mm512_maskz_compress_pd(__mmask8(lanes), (__m512d)v));
}
#endif

// Copies the numbers whose bit is set in wanted(v); returns how many. It writes up to W more behind them. `to` may be
// `from`.
template <class T, class F>
DROPDTW_INLINE std::int64_t keep(const T* from, std::int64_t n, T* to, const F& wanted) {
  std::int64_t kept = 0, j = 0;
#if defined(__AVX512F__)
  constexpr int W = Register<T>::W;
  for (; j + W <= n; j += W) {
    const Vec<T> v = load(from + j);
    const unsigned lanes = wanted(v);
    squeeze(to + kept, lanes, v);
    kept += __builtin_popcount(lanes);
  }
#endif
  for (; j < n; ++j) {
    const T v = from[j];
    to[kept] = v;
    kept += wanted(v);
  }
  return kept;
}

// How many bits of wanted(v) are set.
template <class T, class F>
DROPDTW_INLINE std::int64_t count(const T* from, std::int64_t n, const F& wanted) {
  std::int64_t found = 0, j = 0;
#if defined(__AVX512F__)
  for (; j + Register<T>::W <= n; j += Register<T>::W) found += __builtin_popcount(wanted(load(from + j)));
#endif
  for (; j < n; ++j) found += wanted(from[j]);
  return found;
}

// One of three numbers: the least, the middle or the largest, whichever is likely to be nearest to this rank.
template <class T>
T pivot(const T* from, std::int64_t n, std::int64_t rank, std::uint64_t& seed) {
  T v[3];
  for (T& drawn : v) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    drawn = from[std::int64_t(double(seed >> 32) * 0x1p-32 * double(n))];
  }
  const T low = v[0] < v[1] ? v[0] : v[1], high = v[0] < v[1] ? v[1] : v[0];
  if (3 * rank < n) return low < v[2] ? low : v[2];
  if (3 * rank >= 2 * n) return high < v[2] ? v[2] : high;
  return v[2] < low ? low : v[2] < high ? v[2] : high;
}

// The number of this rank. `work` has room for n + W.
template <class T>
DROPDTW_FLAT T ranked(const T* from, std::int64_t n, std::int64_t rank, T* work) {
  for (std::uint64_t seed = 1;;) {
    const T at = pivot(from, n, rank, seed);
    const std::int64_t below = count<T>(from, n, [=](auto v) { return under<T>(v, at); });
    if (rank < below) {
      n = keep<T>(from, n, work, [=](auto v) { return under<T>(v, at); });
    } else {
      const std::int64_t above = count<T>(from, n, [=](auto v) { return under<T>(at, v); });
      if (rank < n - above) return at;
      rank -= n - above;
      n = keep<T>(from, n, work, [=](auto v) { return under<T>(at, v); });
    }
    from = work;
  }
}

template <class T>
class Selection {
  static constexpr int W = Register<T>::W;
  static constexpr std::int64_t few = 512;  // for this many, a sample does not pay

 public:
  Selection(const T* from, int rows, int n, std::ptrdiff_t pitch, T* work)
      : from_(from), rows_(rows), n_(n), pitch_(pitch), total_(std::int64_t(rows) * n), work_(work) {}

  void find(std::int64_t rank, T* found) {
    T* const kept = work_ + total_ + W;
    std::int64_t below = 0, count = 0;
    const auto inside = [&] { return below <= rank && smaller64(rank + 1, total_ - 1) < below + count; };
    if (total_ > few)
      for (double aside = 1.8; aside < 100 && !inside(); aside *= 4) {
        bracket(rank, aside);
        count = narrow(kept, below);
      }
    if (!inside()) {
      low_ = -inf<T>;
      high_ = inf<T>;
      count = narrow(kept, below);
    }
    const T a = ranked(kept, count, rank - below, work_);
    found[0] = found[1] = a;
    const auto above = [=](auto v) DROPDTW_INLINE_LAMBDA { return under<T>(a, v); };
    const std::int64_t larger = keep<T>(kept, count, work_, above);
    if (count - larger > rank - below + 1 || larger == 0) return;
    Vec<T> least_of_them = all<T>(inf<T>);
    for (int k = 0; k < W; ++k) work_[larger + k] = inf<T>;
    for (std::int64_t k = 0; k < larger; k += W) least_of_them = least<T>(load(work_ + k), least_of_them);
    found[1] = least_of_them[0];
    for (int k = 1; k < W; ++k) found[1] = least_of_them[k] < found[1] ? least_of_them[k] : found[1];
  }

 private:
  static std::int64_t smaller64(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  // Sets bounds that contain this rank and the next, unless the sample is unlucky.
  void bracket(std::int64_t rank, double aside) {
    const std::int64_t size = smaller64(total_ / 64 + 64, 4096);
    T *const sample = work_, *const rest = work_ + size + W;
    const double stride = double(rows_) / double(size);
    for (std::int64_t k = 0; k < size; ++k) {
      const double golden = (double(k) + 0.5) * 0.6180339887498949;  // such columns follow no pattern
      const auto column = std::int64_t((golden - double(std::int64_t(golden))) * n_);
      sample[k] = from_[std::int64_t(double(k) * stride) * pitch_ + column];
    }
    const double share = (double(rank) + 0.5) / double(total_), middle = share * double(size);
    const double reach = aside * __builtin_sqrt(double(size) * share * (1 - share)) + 1;
    const double from = __builtin_floor(middle - reach), to = __builtin_ceil(middle + reach);
    low_ = from < 0 ? -inf<T> : ranked(sample, size, std::int64_t(from), rest);
    high_ = to >= double(size) ? inf<T> : ranked(sample, size, std::int64_t(to), rest);
  }

  // Copies the numbers within the bounds, and counts those below them.
  DROPDTW_FLAT std::int64_t narrow(T* kept, std::int64_t& below) const {
    const T low = low_, high = high_;
    std::int64_t under_low = 0, count = 0;
    for (int r = 0; r < rows_; ++r)
      count += keep<T>(from_ + r * pitch_, n_, kept + count,
                       [&](auto v) DROPDTW_INLINE_LAMBDA { return within<T>(v, low, high, under_low); });
    below = under_low;
    return count;
  }

  const T* const from_;
  const int rows_, n_;
  const std::ptrdiff_t pitch_;
  const std::int64_t total_;
  T* const work_;
  T low_ = 0, high_ = 0;
};

template <class T>
void select(const T* from, int rows, int n, std::ptrdiff_t pitch, std::int64_t rank, T* work, T* found) {
  Selection<T>(from, rows, n, pitch, work).find(rank, found);
}

template void select(const DROPDTW_REAL*, int, int, std::ptrdiff_t, std::int64_t, DROPDTW_REAL*, DROPDTW_REAL*);

}  // namespace dropdtw::DROPDTW_ISA
