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
struct Fold {
  static constexpr int W = Register<T>::W;
  using V = Vec<T>;
  T gamma = 0, inverse = 0;

  explicit Fold(double wanted) : gamma(T(wanted)) {
    if (gamma < tiny_of<T>()) gamma = tiny_of<T>();
    inverse = T(1) / gamma;
  }

  static DROPDTW_INLINE V lowest(const T* rows, std::ptrdiff_t pitch, int count) {
    V low = load<T>(rows);
    for (int k = 1; k < count; ++k) low = least<T>(load<T>(rows + k * pitch), low);
    return low;
  }

  static DROPDTW_INLINE V anchor(V low) { return low < inf<T> ? low : V{}; }

  // Reduces `count` rows of n numbers, `pitch` apart, to one.
  DROPDTW_FLAT void values(const T* rows, std::ptrdiff_t pitch, int count, int n, T* out) const {
    if constexpr (R == Reducer::soft)
      if (count == 2) {
        for (int i = 0; i < n; i += W) {
          const V a = load<T>(rows + i), b = load<T>(rows + i + pitch);
          const V low = least<T>(a, b), high = a < b ? b : a, from = anchor(low);
          const V found = from - gamma * log_of<T>(T(1) + exp_of<T>((from - high) * inverse));
          store<T>(out + i, low < inf<T> ? found : low);
        }
        return;
      }
    for (int i = 0; i < n; i += W) {
      const V low = lowest(rows + i, pitch, count);
      if constexpr (R == Reducer::hard) {
        store<T>(out + i, low);
      } else {
        const V from = anchor(low);
        V total{}, sum{};
        for (int k = 0; k < count; ++k) {
          const V v = load<T>(rows + i + k * pitch);
          const V e = exp_of<T>((from - v) * inverse);
          total += e;
          if constexpr (R == Reducer::smooth) sum += e * (e > T(0) ? v : V{});
        }
        V found;
        if constexpr (R == Reducer::soft)
          found = from - gamma * log_of<T>(total > T(1) ? total : all<T>(1));
        else
          found = sum / (total > T(0) ? total : all<T>(1));
        store<T>(out + i, low < inf<T> ? found : all<T>(inf<T>));
      }
    }
  }

  // Replaces `count` rows of values by the derivatives with respect to them, times g.
  DROPDTW_FLAT void weigh(T* rows, std::ptrdiff_t pitch, int count, int n, const T* g) const {
    if constexpr (R == Reducer::soft)
      if (count == 2) {
        for (int i = 0; i < n; i += W) {
          const V a = load<T>(rows + i), b = load<T>(rows + i + pitch);
          const V low = least<T>(a, b), high = a < b ? b : a;
          const V e = exp_of<T>((anchor(low) - high) * inverse);
          const V more = (low < inf<T> ? load<T>(g + i) : V{}) / (T(1) + e), less = e * more;
          store<T>(rows + i, a < b ? more : less);
          store<T>(rows + i + pitch, a < b ? less : more);
        }
        return;
      }
    for (int i = 0; i < n; i += W) {
      const V from = anchor(lowest(rows + i, pitch, count));
      V total{}, sum{};
      for (int k = 0; k < count; ++k) {
        const V v = load<T>(rows + i + k * pitch);
        const V e = exp_of<T>((from - v) * inverse);
        total += e;
        if constexpr (R == Reducer::smooth)
          sum += e * (e > T(0) ? v : V{});
        else
          store<T>(rows + i + k * pitch, e);
      }
      const V share = T(1) / (total > T(0) ? total : all<T>(1));
      const V scale = share * load<T>(g + i);
      for (int k = 0; k < count; ++k) {
        T* const at = rows + i + k * pitch;
        if constexpr (R == Reducer::soft) {
          store<T>(at, load<T>(at) * scale);
        } else {
          const V v = load<T>(at);
          const V e = exp_of<T>((from - v) * inverse);
          store<T>(at, e > T(0) ? e * scale * (T(1) - (v - sum * share) * inverse) : V{});
        }
      }
    }
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
