// The log softmax of CTC, without an array of its size: the sum of each row, and the softmax where it is needed.
#include "emissions.hpp"

#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

// Calls f(vector, k) for the numbers from k on. The last vector is filled up with `filler`.
template <class T, class F>
DROPDTW_INLINE void each_vector(const T* from, int n, T filler, const F& f) {
  constexpr int W = Register<T>::W;
  int k = 0;
  for (; k + W <= n; k += W) f(load(from + k), k);
  if (k == n) return;
  Vec<T> v = all<T>(filler);
  std::memcpy(&v, from + k, (n - k) * sizeof(T));
  f(v, k);
}

template <class T>
DROPDTW_INLINE void put(T* out, int n, int k, Vec<T> v) {
  if (k + Register<T>::W <= n)
    store(out + k, v);
  else
    std::memcpy(out + k, &v, (n - k) * sizeof(T));
}

template <class T>
DROPDTW_FLAT T total(const T* scores, int n, std::ptrdiff_t ahead) {
  constexpr int W = Register<T>::W;
  Vec<T> highest = all<T>(-inf<T>), sums{};
  Mask<T> sane = ~Mask<T>{};
  each_vector<T>(scores, n, -inf<T>, [&](Vec<T> v, int k) DROPDTW_INLINE_LAMBDA {
    __builtin_prefetch(scores + ahead + k);
    highest = v > highest ? v : highest;
    sane &= v < inf<T>;
  });
  T top = highest[0];
  for (int k = 1; k < W; ++k) top = highest[k] > top ? highest[k] : top;
  if (!everywhere<T>(sane) || top == -inf<T>) return T(__builtin_nan(""));
  each_vector<T>(scores, n, -inf<T>, [&](Vec<T> v, int) DROPDTW_INLINE_LAMBDA { sums += exp_of<T>(v - top); });
  T sum = 0;
  for (int k = 0; k < W; ++k) sum += sums[k];
  return top + log_of<T>(all<T>(sum))[0];
}

template <class T>
DROPDTW_FLAT void softmax(const T* scores, int n, std::ptrdiff_t ahead, T total, T share, T* out) {
  each_vector<T>(scores, n, -inf<T>,
                 [&](Vec<T> v, int k) DROPDTW_INLINE_LAMBDA { put(out, n, k, exp_of<T>(v - total) * share); });
}

template <class T>
DROPDTW_FLAT bool negate(const T* scores, int n, T* out) {
  Mask<T> sane = ~Mask<T>{};
  each_vector<T>(scores, n, T(0), [&](Vec<T> v, int k) DROPDTW_INLINE_LAMBDA {
    sane &= v < inf<T>;
    put(out, n, k, -v);
  });
  return everywhere<T>(sane);
}

void get(EmissionKernel<DROPDTW_REAL>& found) {
  using T = DROPDTW_REAL;
  found = {&total<T>, &softmax<T>, &negate<T>};
}

}  // namespace dropdtw::DROPDTW_ISA
