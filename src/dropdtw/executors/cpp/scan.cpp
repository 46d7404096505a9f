// The kernel of scan.hpp, for one instruction set and one precision; the build compiles this file once for each.
//
// Lane i of anti-diagonal t is the cell of row i and column t − i of the strip, as in wave.hpp. Each value carries the
// x that its path begins with. On ties, the path that begins last wins.
#include "scan.hpp"

#include "block.hpp"
#include "cell.hpp"
#include "tables.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class Tab, class T>
class Scanner {
  static constexpr int S = Tab::states, W = Register<T>::W;
  using Int = typename Register<T>::Int;
  static constexpr std::int64_t furthest = std::int64_t(1) << 30;  // how far back the beginning of a path is tracked

 public:
  explicit Scanner(ScanProblem<T>& problem)
      : p_(problem), terms_(*problem.table, problem.charges), K_(problem.K), N_(problem.N) {
    stride_ = W + (K_ + 1 + W - 1) / W * W + W;
    along_ = N_ + 4 * W;
  }

  Status scan() {
    if (!prepare()) return Status::no_memory;
    int now = 0, last = 1, before = 2;
    std::int64_t cells = 0;
    for (int t = 0; t < K_ + N_; ++t) {
      const int low = larger(0, t - N_ + 1), high = smaller(K_, t);
      cells += high - low + 1;
      if (cells >= 1 << 24) {
        if (!p_.tick(p_.self)) return Status::stopped;
        cells = 0;
      }
      if (t <= K_) enter(last, t);
      lay_out(t, low, high);
      diagonal(now, last, before, t, low, high);
      if (t - N_ + 1 >= 0) leave(now, t - N_ + 1);
      if (t >= K_) end(now, t - K_);
      const int free = before;
      before = last;
      last = now;
      now = free;
    }
    return Status::done;
  }

 private:
  // The values of W cells, and where their paths begin.
  struct Cells {
    Vec<T> value[S];
    Mask<T> begin[S];
  };

  bool prepare() {
    const bool sequences = p_.metric != Metric::none;
    for (int b = 0; b < 3; ++b)
      if (!values_[b].resize(std::size_t(S) * stride_) || !begins_[b].resize(std::size_t(S) * stride_)) return false;
    if (!costs_.resize(stride_) || !drop_z_.resize(stride_) || !drop_x_.resize(along_)) return false;
    if (sequences && (!z_.resize(std::size_t(p_.d) * stride_) || !x_.resize(std::size_t(p_.d) * along_))) return false;
    for (int b = 0; b < 3; ++b)
      for (int k = 0; k < S * stride_; ++k) values_[b][k] = inf<T>, begins_[b][k] = 0;
    for (int k = 0; k < stride_; ++k) drop_z_[k] = costs_[k] = inf<T>;
    for (int i = 1; i <= K_; ++i) drop_z_[W + i] = p_.drop_z[i - 1];
    // Reversed, so that anti-diagonals read it forward.
    for (int k = 0; k < along_; ++k) drop_x_[k] = inf<T>;
    for (int j = 0; j < N_; ++j) drop_x_[2 * W + N_ - 1 - j] = p_.drop_x[j];
    for (int f = 0; sequences && f < p_.d; ++f) {
      T *const z = z_.get() + std::size_t(f) * stride_, *const x = x_.get() + std::size_t(f) * along_;
      for (int k = 0; k < stride_; ++k) z[k] = 0;
      for (int k = 0; k < along_; ++k) x[k] = 0;
      for (int i = 1; i <= K_; ++i) z[W + i] = p_.z[std::size_t(i - 1) * p_.d + f];
      for (int j = 0; j < N_; ++j) x[2 * W + N_ - 1 - j] = p_.x[std::size_t(j) * p_.d + f];
    }
    return true;
  }

  T* values(int buffer, int s) { return values_[buffer].get() + std::size_t(s) * stride_ + W; }
  Int* begins(int buffer, int s) { return begins_[buffer].get() + std::size_t(s) * stride_ + W; }

  // Puts row i of the column before the strip where anti-diagonal i reads it.
  void enter(int buffer, int i) {
    for (int s = 0; s < S; ++s) {
      const std::size_t k = std::size_t(s) * (K_ + 1) + i;
      const std::int64_t begin = p_.begins[k] - p_.offset;
      values(buffer, s)[i] = p_.values[k];
      begins(buffer, s)[i] = Int(begin < -furthest ? -furthest : begin);
    }
  }

  // Stores row i of the last column.
  void leave(int buffer, int i) {
    for (int s = 0; s < S; ++s) {
      const std::size_t k = std::size_t(s) * (K_ + 1) + i;
      p_.values[k] = values(buffer, s)[i];
      p_.begins[k] = begins(buffer, s)[i] + p_.offset;
    }
  }

  // Stores the best path that ends in column j.
  void end(int buffer, int j) {
    T best = inf<T>;
    Int begin = 0;
    for (int s : Tab::final) {
      const T v = values(buffer, s)[K_];
      const Int b = begins(buffer, s)[K_];
      if (v < best || (v == best && b > begin)) best = v, begin = b;
    }
    p_.cost[j] = best;
    p_.begin[j] = best < inf<T> ? begin + p_.offset : -1;
  }

  // The match costs of anti-diagonal t, by lane.
  DROPDTW_FLAT void lay_out(int t, int low, int high) {
    T* const out = costs_.get() + W;
    if (p_.metric == Metric::none) {
      for (int i = larger(low, 1); i <= high; ++i)
        out[i] = p_.match[std::ptrdiff_t(i - 1) * p_.row + std::ptrdiff_t(t - i) * p_.column];
      return;
    }
    const T *const z = z_.get() + W, *const x = x_.get() + 2 * W + N_ - 1 - t;
    const std::ptrdiff_t stride = stride_, along = along_;
    const int d = p_.d;
    for (int i = low / W * W; i <= high; i += W) {
      Vec<T> sum{};
      for (int f = 0; f < d; ++f) {
        const Vec<T> gap = load(z + f * stride + i) - load(x + f * along + i);
        sum += gap * gap;
      }
      if (p_.metric == Metric::euclidean) sum = root_of<T>(sum);
      store(out + i, sum);
    }
    if (low == 0) out[0] = inf<T>;
  }

  DROPDTW_FLAT void diagonal(int now, int last, int before, int t, int low, int high) {
    const T *const v_last = values(last, 0), *const v_before = values(before, 0), *const match = costs_.get() + W;
    const Int *const b_last = begins(last, 0), *const b_before = begins(before, 0);
    const T *const drop_x = drop_x_.get() + 2 * W + N_ - 1 - t, *const drop_z = drop_z_.get() + W;
    T* const v_now = values(now, 0);
    Int* const b_now = begins(now, 0);
    const std::ptrdiff_t stride = stride_;
    const Terms<T> terms = terms_;
    for (int i = low / W * W; i <= high; i += W) {
      Cells diag, left, top, here;
      each_state<Tab>([&](auto s) DROPDTW_INLINE_LAMBDA {
        left.value[s] = load(v_last + s * stride + i);
        left.begin[s] = load_begins(b_last + s * stride + i);
        top.value[s] = load(v_last + s * stride + i - 1);
        top.begin[s] = load_begins(b_last + s * stride + i - 1);
        diag.value[s] = load(v_before + s * stride + i - 1);
        diag.begin[s] = load_begins(b_before + s * stride + i - 1);
      });
      const Vec<T> price[] = {load(match + i), load(drop_x + i), load(drop_z + i)};
      each_state<Tab>([&](auto s) DROPDTW_INLINE_LAMBDA {
        Vec<T> best = all<T>(inf<T>);
        Mask<T> begin{};
        each_edge<Tab, s>([&](auto e) DROPDTW_INLINE_LAMBDA {
          if (!present<Tab, e>(terms)) return;
          constexpr Edge edge = Tab::edges[e];
          static_assert(edge.move != Move::same && edge.weight == 1);
          const Cells& from = edge.move == Move::diag ? diag : edge.move == Move::left ? left : top;
          Vec<T> v = plus_charge<Tab, e, T>(from.value[edge.src], terms);
          if constexpr (edge.cost != Cost::free) v += price[int(edge.cost)];
          const Mask<T> b = from.begin[edge.src];
          const Mask<T> better = (v < best) | ((v == best) & (b > begin));
          best = better ? v : best;
          begin = better ? b : begin;
        });
        // A path in the start state has not begun: it begins with the next x at the earliest.
        if constexpr (Tab::start[s]) begin = (Mask<T>{} + Int(t + 1 - i)) - lane_numbers<T>();
        here.value[s] = best;
        here.begin[s] = begin;
      });
      each_state<Tab>([&](auto s) DROPDTW_INLINE_LAMBDA {
        store(v_now + s * stride + i, here.value[s]);
        std::memcpy(b_now + s * stride + i, &here.begin[s], sizeof here.begin[s]);
      });
    }
  }

  static DROPDTW_INLINE Mask<T> load_begins(const Int* p) {
    Mask<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }

  ScanProblem<T>& p_;
  const int K_, N_;
  Terms<T> terms_;
  int stride_, along_;
  Buffer<T> values_[3], costs_, drop_x_, drop_z_, z_, x_;
  Buffer<Int> begins_[3];
};

template <class T>
Status scan(ScanProblem<T>& problem) {
  return Scanner<dropdtw::occurrence, T>(problem).scan();
}

void get(ScanKernel<DROPDTW_REAL>& found) { found = {&scan<DROPDTW_REAL>}; }

}  // namespace dropdtw::DROPDTW_ISA
