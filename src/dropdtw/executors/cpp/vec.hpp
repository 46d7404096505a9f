// Vectors of one register, as compiler vector extensions.
//
// Everything here is compiled once per instruction set, each time in its own namespace (DROPDTW_ISA). With shared
// names, the linker would keep a single copy for all processors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define DROPDTW_BYTES 64
#elif defined(__AVX2__)
#define DROPDTW_BYTES 32
#else
#define DROPDTW_BYTES 16
#endif
#ifdef DROPDTW_SANITIZED  // instrumented code takes minutes to compile if everything is inlined
#define DROPDTW_INLINE inline
#define DROPDTW_INLINE_LAMBDA
#define DROPDTW_FLAT
#else
#define DROPDTW_INLINE inline __attribute__((always_inline))
#define DROPDTW_INLINE_LAMBDA __attribute__((always_inline))
// For functions with inner loops: inlines everything they call, lambdas included, as far as compilers allow.
#define DROPDTW_FLAT __attribute__((flatten))
#endif
// For functions that all tables share, and that would otherwise be inlined into the kernels of each.
#define DROPDTW_APART __attribute__((noinline))

namespace dropdtw::DROPDTW_ISA {

template <class T>
struct Register {
  using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  static constexpr int W = DROPDTW_BYTES / sizeof(T);
  typedef T V __attribute__((vector_size(DROPDTW_BYTES)));
  typedef Int M __attribute__((vector_size(DROPDTW_BYTES)));
  typedef double Wide __attribute__((vector_size(W * sizeof(double))));
  typedef std::uint8_t Byte __attribute__((vector_size(W)));
  typedef std::uint16_t Word __attribute__((vector_size(2 * W)));
};

template <class T>
using Vec = typename Register<T>::V;
template <class T>
using Mask = typename Register<T>::M;

template <class T>
inline constexpr T inf = T(__builtin_inf());

template <class T>
DROPDTW_INLINE Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T>
DROPDTW_INLINE void store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}

template <class T>
DROPDTW_INLINE Vec<T> all(T x) {
  return x - Vec<T>{};  // 0 + x would turn −0 into 0
}

// a < b ? a : b, as the minimum instructions of processors compute it.
template <class T>
DROPDTW_INLINE Vec<T> least(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return (Vec<T>)_mm512_min_ps((__m512)a, (__m512)b);
  if constexpr (sizeof(T) == 8) return (Vec<T>)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return (Vec<T>)_mm256_min_ps((__m256)a, (__m256)b);
  if constexpr (sizeof(T) == 8) return (Vec<T>)_mm256_min_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
  if constexpr (sizeof(T) == 4) return (Vec<T>)_mm_min_ps((__m128)a, (__m128)b);
  if constexpr (sizeof(T) == 8) return (Vec<T>)_mm_min_pd((__m128d)a, (__m128d)b);
#endif
  return a < b ? a : b;
}

// Makes sure that a product is rounded before it is added to a sum. Otherwise compilers fuse the two in some places and
// not in others, and a pair would cost slightly more or less in lanes than alone.
template <class T>
DROPDTW_INLINE Vec<T> rounded(Vec<T> v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}

template <class T, int... k>
DROPDTW_INLINE constexpr Mask<T> count_up(std::integer_sequence<int, k...>) {
  return Mask<T>{k...};
}
template <class T>
DROPDTW_INLINE constexpr Mask<T> lane_numbers() {
  return count_up<T>(std::make_integer_sequence<int, Register<T>::W>{});
}

template <class T>
DROPDTW_INLINE bool everywhere(Mask<T> mask) {
  const typename Register<T>::Byte bytes = __builtin_convertvector(mask, typename Register<T>::Byte);
  constexpr int words = (Register<T>::W + 7) / 8;
  std::uint64_t held[words];
  std::memset(held, -1, sizeof held);
  std::memcpy(held, &bytes, sizeof bytes);
  for (int k = 1; k < words; ++k) held[0] &= held[k];
  return held[0] == ~std::uint64_t(0);
}

template <class T, int... k>
DROPDTW_INLINE Vec<T> from_previous_lane(Vec<T> previous, Vec<T> v, std::integer_sequence<int, k...>) {
  return __builtin_shufflevector(previous, v, (Register<T>::W - 1 + k)...);
}
// Lane k of the result is lane k − 1 of v; lane 0 is the last lane of `previous`.
template <class T>
DROPDTW_INLINE Vec<T> from_previous_lane(Vec<T> previous, Vec<T> v) {
  return from_previous_lane<T>(previous, v, std::make_integer_sequence<int, Register<T>::W>{});
}

// Calls f(0), …, f(n − 1) with compile-time constants, so that arrays of vectors stay in registers.
template <int n, class F>
DROPDTW_INLINE void unrolled(F&& f) {
  [&]<int... k>(std::integer_sequence<int, k...>)
      DROPDTW_INLINE_LAMBDA { (f(std::integral_constant<int, k>{}), ...); }(std::make_integer_sequence<int, n>{});
}

// Swaps the off-diagonal d × d blocks of each 2d × 2d block of v, seen as a W × W matrix.
template <class T, int d, int... k>
DROPDTW_INLINE void exchange(Vec<T>* v, std::integer_sequence<int, k...>) {
  constexpr int W = Register<T>::W;
  unrolled<W>([&](auto r) DROPDTW_INLINE_LAMBDA {
    if constexpr (!(r & d)) {
      const Vec<T> a = v[r], b = v[r + d];
      v[r] = __builtin_shufflevector(a, b, (k & d ? W + k - d : k)...);
      v[r + d] = __builtin_shufflevector(a, b, (k & d ? W + k : k + d)...);
    }
  });
}

// Transposes the W × W matrix whose rows are v.
template <class T, int d = Register<T>::W / 2>
DROPDTW_INLINE void transpose(Vec<T>* v) {
  exchange<T, d>(v, std::make_integer_sequence<int, Register<T>::W>{});
  if constexpr (d > 1) transpose<T, d / 2>(v);
}

// Transposes a W × W matrix from memory to memory, times a factor; rows are `from_row` and `to_row` numbers apart.
template <class T>
DROPDTW_INLINE void transpose(const T* from, std::ptrdiff_t from_row, T* to, std::ptrdiff_t to_row, T factor = 1) {
  Vec<T> v[Register<T>::W];
  unrolled<Register<T>::W>([&](auto r) DROPDTW_INLINE_LAMBDA { v[r] = load(from + r * from_row) * factor; });
  transpose<T>(v);
  unrolled<Register<T>::W>([&](auto r) DROPDTW_INLINE_LAMBDA { store(to + r * to_row, v[r]); });
}

DROPDTW_INLINE constexpr int smaller(int a, int b) { return a < b ? a : b; }
DROPDTW_INLINE constexpr int larger(int a, int b) { return a > b ? a : b; }

// The polynomial with these coefficients, highest power first.
template <class T, class... Rest>
DROPDTW_INLINE Vec<T> polynomial(Vec<T> x, double highest, Rest... rest) {
  Vec<T> p = all<T>(T(highest));
  ((p = p * x + T(rest)), ...);
  return p;
}

template <class T>
DROPDTW_INLINE Vec<T> root_of(Vec<T> x) {
  for (int k = 0; k < Register<T>::W; ++k) x[k] = sizeof(T) == 4 ? __builtin_sqrtf(x[k]) : __builtin_sqrt(x[k]);
  return x;
}

// exp(x) for x ≤ 0, to within two units in the last place; 0 if it would underflow.
// x = n log 2 + r with |r| ≤ log(2)/2, and the Taylor polynomial of exp(r).
template <class T>
DROPDTW_INLINE Vec<T> exp_of(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr T low = single ? T(-87) : T(-708);
  constexpr T magic = single ? T(12582912) : T(6755399441055744);  // 1.5 · 2^23, 1.5 · 2^52: adding it rounds
  constexpr T log2_high = single ? T(0.693359375) : T(0.693147180369123816490);
  constexpr T log2_low = single ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
  const Vec<T> y = x > low ? x : all<T>(low);
  const Vec<T> shifted = y * T(1.44269504088896340736) + magic;
  const Vec<T> n = shifted - magic;
  const Vec<T> r = (y - n * log2_high) - n * log2_low;
  Vec<T> p;
  if constexpr (single)
    p = polynomial<T>(r, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1., 1.);
  else
    p = polynomial<T>(r, 1. / 6227020800., 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
                      1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1., 1.);
  // 2^n: the low bits of `shifted` hold n in two's complement.
  Mask<T> bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + (single ? 127 : 1023)) << (single ? 23 : 52);
  Vec<T> scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return x > low ? p * scale : Vec<T>{};
}

// log(x) for finite x ≥ 1: x = 2^n m with m in [√½, √2), log m = 2 atanh((m − 1)/(m + 1)).
template <class T>
DROPDTW_INLINE Vec<T> log_of(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr int shift = single ? 23 : 52;
  constexpr std::int64_t root_half = single ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
  Mask<T> bits;
  std::memcpy(&bits, &x, sizeof bits);
  const Mask<T> exponent = (bits - (decltype(bits[0] + 0))root_half) >> shift;
  bits -= exponent << shift;
  Vec<T> m;
  std::memcpy(&m, &bits, sizeof m);
  const Vec<T> n = __builtin_convertvector(exponent, Vec<T>);
  const Vec<T> s = (m - T(1)) / (m + T(1));
  const Vec<T> q = s * s;
  Vec<T> p;
  if constexpr (single)
    p = polynomial<T>(q, 1. / 9, 1. / 7, 1. / 5, 1. / 3);
  else
    p = polynomial<T>(q, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3);
  const Vec<T> log_m = T(2) * s + T(2) * s * q * p;
  return n * T(0.693147180559945309417) + log_m;
}

}  // namespace dropdtw::DROPDTW_ISA
