// Reducers over several rows of values, and lookups: the inner loops of graph kernels.
#pragma once
#include "problem.hpp"
#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
DROPDTW_INLINE T tiny_of() {
  return sizeof(T) == 4 ? T(1.17549435e-38) : T(2.2250738585072014e-308);
}

// Values that are ∞ do not exist: they have no weight, and no say.
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

  // The value of `count` rows of n numbers, `pitch` apart.
  DROPDTW_FLAT void values(const T* rows, std::ptrdiff_t pitch, int count, int n, T* out) const {
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

  // Turns `count` rows of values into their derivatives times g.
  DROPDTW_FLAT void weigh(T* rows, std::ptrdiff_t pitch, int count, int n, const T* g) const {
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

// out[k] = from[which[k]] for k < n, a multiple of 16.
template <class T>
DROPDTW_INLINE void gather(const T* from, const std::int32_t* which, int n, T* out) {
  for (int k = 0; k < n; k += 8)
    for (int lane = 0; lane < 8; ++lane) out[k + lane] = from[which[k + lane]];
}

// The same where `from` has `size` numbers, few as a rule, with room behind them for four vectors.
template <class T>
DROPDTW_INLINE void look_up(const T* from, int size, const std::int32_t* which, int n, T* out) {
#if defined(__AVX512F__)
  constexpr int W = Register<T>::W;
  if constexpr (sizeof(T) == 4) {
    if (size <= 4 * W) {
      const __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + W);
      const __m512 c = _mm512_loadu_ps(from + 2 * W), d = _mm512_loadu_ps(from + 3 * W);
      for (int k = 0; k < n; k += W) {
        const __m512i at = _mm512_loadu_si512(which + k);
        __m512 v = _mm512_permutex2var_ps(a, at, b);
        if (size > 2 * W)
          v = _mm512_mask_blend_ps(_mm512_cmpge_epi32_mask(at, _mm512_set1_epi32(2 * W)), v,
                                   _mm512_permutex2var_ps(c, at, d));
        _mm512_storeu_ps(out + k, v);
      }
      return;
    }
  } else if (size <= 2 * W) {
    const __m512d a = _mm512_loadu_pd(from), b = _mm512_loadu_pd(from + W);
    for (int k = 0; k < n; k += W) {
      const __m512i at = _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i*)(which + k)));
      _mm512_storeu_pd(out + k, _mm512_permutex2var_pd(a, at, b));
    }
    return;
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    if (size <= 32) {
      const __m256 a = _mm256_loadu_ps(from), b = _mm256_loadu_ps(from + 8);
      const __m256 c = _mm256_loadu_ps(from + 16), d = _mm256_loadu_ps(from + 24);
      for (int k = 0; k < n; k += 8) {
        const __m256i at = _mm256_loadu_si256((const __m256i*)(which + k));
        const __m256 by8 = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));  // bit 3 as a sign
        const __m256 by16 = _mm256_castsi256_ps(_mm256_slli_epi32(at, 27));
        const __m256 low = _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, at), _mm256_permutevar8x32_ps(b, at), by8);
        const __m256 high = _mm256_blendv_ps(_mm256_permutevar8x32_ps(c, at), _mm256_permutevar8x32_ps(d, at), by8);
        _mm256_storeu_ps(out + k, _mm256_blendv_ps(low, high, by16));
      }
      return;
    }
#endif
  (void)size;
  gather(from, which, n, out);
}

}  // namespace dropdtw::DROPDTW_ISA
