// Reducers over several rows of values, and lookups: the inner loops of graph kernels.
#pragma once
#include "problem.hpp"
#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
DROPDTW_INLINE T tiny_of() {
  return sizeof(T) == 4 ? T(1.17549435e-38) : T(2.2250738585072014e-308);
}

// Infinite values are ignored: their weight is 0.
template <class T, Reducer R>
class Fold {
  static constexpr int W = Register<T>::W;
  using V = Vec<T>;
  T gamma = 0, inverse = 0;

 public:
  explicit Fold(double wanted) : gamma(T(wanted)) {
    if (gamma < tiny_of<T>()) gamma = tiny_of<T>();
    inverse = T(1) / gamma;
  }

  static DROPDTW_INLINE V anchor(V low) { return low < inf<T> ? low : V{}; }

  // Reduces `count` rows of n numbers to one. read(k, i) returns W numbers of row k, and keep(i, v) takes the result.
  template <class Read, class Keep>
  DROPDTW_INLINE void reduce(const Read& read, int count, int n, const Keep& keep) const {
    if constexpr (R == Reducer::soft)
      if (count == 2) {
        for (int i = 0; i < n; i += W) {
          const V a = read(0, i), b = read(1, i);
          const V low = least<T>(a, b), high = a < b ? b : a, from = anchor(low);
          const V found = from - gamma * log_of<T>(T(1) + exp_of<T>((from - high) * inverse));
          keep(i, low < inf<T> ? found : low);
        }
        return;
      }
    if (count == 3) return reduce_all<3>(read, count, n, keep);
    reduce_all<0>(read, count, n, keep);
  }

  // Calls credit(k, i, w) with the derivatives of the reduced values with respect to row k, times g.
  template <class Read, class Credit>
  DROPDTW_INLINE void distribute(const Read& read, int count, int n, const T* g, const Credit& credit) const {
    if constexpr (R == Reducer::soft)
      if (count == 2) {
        for (int i = 0; i < n; i += W) {
          const V a = read(0, i), b = read(1, i);
          const V low = least<T>(a, b), high = a < b ? b : a;
          const V e = exp_of<T>((anchor(low) - high) * inverse);
          const V more = (low < inf<T> ? load<T>(g + i) : V{}) / (T(1) + e), less = e * more;
          credit(0, i, a < b ? more : less);
          credit(1, i, a < b ? less : more);
        }
        return;
      }
    if (count == 3) return distribute_all<3>(read, count, n, g, credit);
    distribute_all<0>(read, count, n, g, credit);
  }

  // The same for rows in memory, `pitch` apart; derivatives replace the values.
  DROPDTW_FLAT void values(const T* rows, std::ptrdiff_t pitch, int count, int n, T* out) const {
    const auto read = [&](int k, int i) DROPDTW_INLINE_LAMBDA { return load<T>(rows + k * pitch + i); };
    reduce(read, count, n, [&](int i, V v) DROPDTW_INLINE_LAMBDA { store<T>(out + i, v); });
  }
  DROPDTW_FLAT void weigh(T* rows, std::ptrdiff_t pitch, int count, int n, const T* g) const {
    const auto read = [&](int k, int i) DROPDTW_INLINE_LAMBDA { return load<T>(rows + k * pitch + i); };
    distribute(read, count, n, g, [&](int k, int i, V v) DROPDTW_INLINE_LAMBDA { store<T>(rows + k * pitch + i, v); });
  }

 private:
  // Calls f(k) for each row; `fixed`: their number, if it is known when this is compiled.
  template <int fixed, class F>
  static DROPDTW_INLINE void each(int count, const F& f) {
    if constexpr (fixed > 0)
      unrolled<fixed>(f);
    else
      for (int k = 0; k < count; ++k) f(k);
  }

  template <int fixed, class Read, class Keep>
  DROPDTW_INLINE void reduce_all(const Read& read, int count, int n, const Keep& keep) const {
    for (int i = 0; i < n; i += W) {
      const V low = lowest<fixed>(read, count, i);
      if constexpr (R == Reducer::hard) {
        keep(i, low);
      } else {
        const V from = anchor(low);
        V total{}, sum{};
        each<fixed>(count, [&](int k) DROPDTW_INLINE_LAMBDA {
          const V below = from - read(k, i);
          const V e = exp_of<T>(below * inverse);
          total += e;
          if constexpr (R == Reducer::smooth) sum += e * (e > T(0) ? below : V{});
        });
        V found;
        if constexpr (R == Reducer::soft)
          found = from - gamma * log_of<T>(total > T(1) ? total : all<T>(1));
        else
          found = from - sum / (total > T(0) ? total : all<T>(1));
        keep(i, low < inf<T> ? found : all<T>(inf<T>));
      }
    }
  }

  template <int fixed, class Read, class Credit>
  DROPDTW_INLINE void distribute_all(const Read& read, int count, int n, const T* g, const Credit& credit) const {
    constexpr int most = 16;  // exponentials that are kept; those of further rows are computed again
    V kept[most];
    for (int i = 0; i < n; i += W) {
      const V from = anchor(lowest<fixed>(read, count, i));
      V total{}, sum{};
      each<fixed>(count, [&](int k) DROPDTW_INLINE_LAMBDA {
        const V below = from - read(k, i);
        const V e = exp_of<T>(below * inverse);
        total += e;
        if constexpr (R == Reducer::smooth) sum += e * (e > T(0) ? below : V{});
        if (k < most) kept[k] = e;
      });
      const V share = T(1) / (total > T(0) ? total : all<T>(1)), scale = share * load<T>(g + i);
      each<fixed>(count, [&](int k) DROPDTW_INLINE_LAMBDA {
        const V below = from - read(k, i);
        const V e = k < most ? kept[k] : exp_of<T>(below * inverse);
        if constexpr (R == Reducer::soft)
          credit(k, i, e * scale);
        else
          credit(k, i, e > T(0) ? e * scale * (T(1) + (below - sum * share) * inverse) : V{});
      });
    }
  }

  template <int fixed, class Read>
  static DROPDTW_INLINE V lowest(const Read& read, int count, int i) {
    V low = read(0, i);
    each<fixed>(count, [&](int k) DROPDTW_INLINE_LAMBDA {
      if (k > 0) low = least<T>(read(k, i), low);
    });
    return low;
  }
};

// out[k] = from[which[k]] for k < n; n is a multiple of 16.
template <class T>
DROPDTW_INLINE void gather(const T* from, const std::int32_t* which, int n, T* out) {
  for (int k = 0; k < n; k += 8) {
    const T a = from[which[k]], b = from[which[k + 1]], c = from[which[k + 2]], d = from[which[k + 3]];
    const T e = from[which[k + 4]], f = from[which[k + 5]], g = from[which[k + 6]], h = from[which[k + 7]];
    out[k] = a, out[k + 1] = b, out[k + 2] = c, out[k + 3] = d;
    out[k + 4] = e, out[k + 5] = f, out[k + 6] = g, out[k + 7] = h;
  }
}

// A short `from` fits into registers, where shuffles do the lookup. They do not have to wait until vectors that were
// stored a moment ago can be read back number by number.
#if defined(__AVX512F__)
inline constexpr int most_shuffled = 16;  // vectors

DROPDTW_INLINE __m512 shuffled(const float* from, __m512i at) {
  return _mm512_permutex2var_ps(_mm512_loadu_ps(from), at, _mm512_loadu_ps(from + 16));
}
DROPDTW_INLINE __m512d shuffled(const double* from, __m512i at) {
  return _mm512_permutex2var_pd(_mm512_loadu_pd(from), at, _mm512_loadu_pd(from + 8));
}
DROPDTW_INLINE __m512 chosen(__m512i at, int bit, __m512 a, __m512 b) {
  return _mm512_mask_blend_ps(_mm512_test_epi32_mask(at, _mm512_set1_epi32(bit)), a, b);
}
DROPDTW_INLINE __m512d chosen(__m512i at, int bit, __m512d a, __m512d b) {
  return _mm512_mask_blend_pd(_mm512_test_epi64_mask(at, _mm512_set1_epi64(bit)), a, b);
}

// Looks up numbers at indices below `vectors` · W, where `vectors` is a power of 2.
template <int vectors, class T>
DROPDTW_INLINE auto shuffled_of(const T* from, __m512i at) {
  if constexpr (vectors == 2) {
    return shuffled(from, at);
  } else {
    constexpr int half = vectors / 2 * Register<T>::W;
    return chosen(at, half, shuffled_of<vectors / 2>(from, at), shuffled_of<vectors / 2>(from + half, at));
  }
}

template <int vectors, class T>
DROPDTW_INLINE void shuffle(const T* from, const std::int32_t* which, int n, T* out) {
  for (int k = 0; k < n; k += Register<T>::W) {
    __m512i at;
    if constexpr (sizeof(T) == 4)
      at = _mm512_loadu_si512(which + k);
    else
      at = _mm512_cvtepi32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(which + k)));
    store<T>(out + k, (Vec<T>)shuffled_of<vectors>(from, at));
  }
}
#elif defined(__AVX2__)
inline constexpr int most_shuffled = 4;

DROPDTW_INLINE void shuffle_few(const float* from, const std::int32_t* which, int n, float* out) {
  const __m256 a = _mm256_loadu_ps(from), b = _mm256_loadu_ps(from + 8);
  const __m256 c = _mm256_loadu_ps(from + 16), d = _mm256_loadu_ps(from + 24);
  for (int k = 0; k < n; k += 8) {
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(which + k));
    const __m256 by8 = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));  // bit 3 becomes the sign bit
    const __m256 by16 = _mm256_castsi256_ps(_mm256_slli_epi32(at, 27));
    const __m256 low = _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, at), _mm256_permutevar8x32_ps(b, at), by8);
    const __m256 high = _mm256_blendv_ps(_mm256_permutevar8x32_ps(c, at), _mm256_permutevar8x32_ps(d, at), by8);
    _mm256_storeu_ps(out + k, _mm256_blendv_ps(low, high, by16));
  }
}
#else
inline constexpr int most_shuffled = 0;
#endif

// Like `gather`, where `from` has `size` numbers. May read past them, as far as the vectors that are shuffled reach.
template <class T>
DROPDTW_INLINE void look_up(const T* from, int size, const std::int32_t* which, int n, T* out) {
  constexpr int W = Register<T>::W;
#if defined(__AVX512F__)
  if (size <= 2 * W) return shuffle<2>(from, which, n, out);
  if (size <= 4 * W) return shuffle<4>(from, which, n, out);
  if (size <= 8 * W) return shuffle<8>(from, which, n, out);
  if (size <= 16 * W) return shuffle<16>(from, which, n, out);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    if (size <= 4 * W) return shuffle_few(from, which, n, out);
#endif
  (void)size;
  (void)W;
  gather(from, which, n, out);
}

}  // namespace dropdtw::DROPDTW_ISA
