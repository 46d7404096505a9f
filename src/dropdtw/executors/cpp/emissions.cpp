// The log softmax of CTC without an array of its size: the sum of each frame, and the softmax where the gradient is
// written. A few frames at a time, since the costs of a token lie side by side, and so do the scores of a frame.
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

// log Σ exp of n scores; NaN if one of them is NaN or +∞, or if all are −∞. Fetches what lies `ahead` into the cache:
// frames are too far apart for the processor to predict the next one.
template <class T>
DROPDTW_INLINE T total(const T* scores, int n, std::ptrdiff_t ahead) {
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

// out = share · exp(score − total).
template <class T>
DROPDTW_INLINE void softmax(const T* scores, int n, std::ptrdiff_t ahead, T total, T share, T* out) {
  each_vector<T>(scores, n, -inf<T>, [&](Vec<T> v, int k) DROPDTW_INLINE_LAMBDA {
    __builtin_prefetch(scores + ahead + k);
    put(out, n, k, exp_of<T>(v - total) * share);
  });
}

template <class T>
DROPDTW_FLAT bool costs(const Frames<T>& frames, const Emissions<T>& out) {
  constexpr int F = frames_at_once, W = Register<T>::W;
  Mask<T> sane = ~Mask<T>{};
  for (int t = 0; t < frames.count; t += F) {
    const int n = smaller(F, frames.count - t);
    const T* frame[F];
    T whole[F] = {};
    for (int r = 0; r < F; ++r) frame[r] = frames.scores + (t + smaller(r, n - 1)) * frames.step;
    for (int r = 0; r < n && out.total != nullptr; ++r)
      out.total[t + r] = whole[r] = total<T>(frame[r], frames.vocabulary, frames.step);
    for (int r = n; r < F; ++r) whole[r] = whole[n - 1];
    const auto write = [&](std::int64_t token, T* to) DROPDTW_INLINE_LAMBDA {
      T cost[F];
      unrolled<F>([&](auto r) DROPDTW_INLINE_LAMBDA { cost[r] = frame[r][token]; });
      unrolled<F / W>([&](auto k) DROPDTW_INLINE_LAMBDA {
        const Vec<T> v = load(whole + k * W) - load(cost + k * W);
        sane &= v > -inf<T>;
        store(cost + k * W, v);
      });
      std::memcpy(to, cost, n == F ? sizeof cost : n * sizeof(T));
    };
    write(frames.blank, out.blanks + t);
    for (int i = 0; i < frames.K; ++i) write(frames.text[i], out.tokens + i * out.row + t);
  }
  return everywhere<T>(sane);
}

template <class T>
DROPDTW_FLAT void gradient(const Frames<T>& frames, const Emissions<const T>& derivatives, T times, T* some, T* out,
                           std::ptrdiff_t step) {
  constexpr int F = frames_at_once, W = Register<T>::W;
  for (int t = 0; t < frames.count; t += F) {
    const int n = smaller(F, frames.count - t);
    T blanks[F] = {}, share[F];
    const auto read = [&](const T* from, T* to) DROPDTW_INLINE_LAMBDA {
      if (n < F) std::memset(to, 0, F * sizeof(T));
      std::memcpy(to, from, n == F ? F * sizeof(T) : n * sizeof(T));
      unrolled<F / W>([&](auto k) DROPDTW_INLINE_LAMBDA { store(to + k * W, load(to + k * W) * times); });
    };
    read(derivatives.blanks + t, blanks);
    std::memcpy(share, blanks, sizeof share);
    for (int i = 0; i < frames.K; ++i) {
      read(derivatives.tokens + i * derivatives.row + t, some + i * F);
      unrolled<F / W>([&](auto k) DROPDTW_INLINE_LAMBDA {
        store(share + k * W, load(share + k * W) + load(some + i * F + k * W));
      });
    }
    for (int r = 0; r < n; ++r, out += step) {
      if (derivatives.total != nullptr)
        softmax<T>(frames.scores + (t + r) * frames.step, frames.vocabulary, frames.step, derivatives.total[t + r],
                   share[r], out);
      else
        std::memset(out, 0, frames.vocabulary * sizeof(T));
      out[frames.blank] -= blanks[r];
      for (int i = 0; i < frames.K; ++i) out[frames.text[i]] -= some[i * F + r];
    }
  }
}

template <class T>
DROPDTW_FLAT bool sane(const T* scores, int n) {
  Mask<T> found = ~Mask<T>{};
  each_vector<T>(scores, n, T(0), [&](Vec<T> v, int) DROPDTW_INLINE_LAMBDA { found &= v < inf<T>; });
  return everywhere<T>(found);
}

void get(EmissionKernel<DROPDTW_REAL>& found) {
  using T = DROPDTW_REAL;
  found = {&costs<T>, &gradient<T>, &sane<T>};
}

}  // namespace dropdtw::DROPDTW_ISA
