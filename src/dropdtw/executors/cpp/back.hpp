// The backward pass of soft and smooth minima through a block of columns: derivatives with respect to the states and to
// the costs they pay.
#pragma once
#include "wave.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
struct Back : Wave<Any, T> {
  using Forward = Wave<Any, T>;
  using Forward::along, Forward::bases_, Forward::block_, Forward::drop_z_, Forward::enter, Forward::fill, Forward::K_,
      Forward::line, Forward::lines_, Forward::match_, Forward::N_, Forward::on_column_0, Forward::on_row_0,
      Forward::problem_, Forward::reach, Forward::rebased_from, Forward::rebased_to, Forward::state, Forward::states,
      Forward::stride_, Forward::W, Forward::wall;

  using Forward::Forward;

  bool prepare_back() {
    bool ok = grad_x_.resize(N_ + 1 + 4 * W) && grad_z_.resize(stride_) && grad_charges_.resize(charge_count * W);
    ok = ok && grad_costs_.resize(std::size_t(group) * stride_);
    for (auto& buffer : grad_) ok = ok && buffer.resize(std::size_t(states()) * stride_);
    if (!ok) return false;
    for (int k = 0; k < N_ + 1 + 4 * W; ++k) grad_x_[k] = 0;
    for (int k = 0; k < stride_; ++k) grad_z_[k] = 0;
    for (int k = 0; k < charge_count * W; ++k) grad_charges_[k] = 0;
    return true;
  }

  // Writes the derivatives with respect to the drop costs, summed over all blocks.
  void write_drops() {
    for (int i = 1; i <= K_; ++i) problem_.grad_z[i - 1] = grad_z_[W + i];
    for (int j = 1; j <= N_; ++j) problem_.grad_x[j - 1] = grad_x_[2 * W + N_ - j];
  }

  T* flows(int buffer, int s) { return grad_[buffer].get() + std::size_t(s) * stride_ + W; }

  // Restores the states of anti-diagonal t as `forward` held them when it computed t + 1.
  void restore(int buffer, int t, const Column<T>& left, const T* kept) {
    if (t < 0) fill(buffer, inf<T>);
    if (t >= 0)
      for (int s = 0; s < states(); ++s) {
        const std::size_t n = block_.offset[t + 1] - block_.offset[t];
        std::memcpy(state(buffer, s) + block_.begin(t), kept + states() * block_.offset[t] + s * n, n * sizeof(T));
      }
    if (t >= 0 && block_.narrow()) wall(buffer, t);
    if (t + 1 >= 0 && t + 1 <= K_) enter(buffer, t + 1, left);
  }

  // Shifts the states of anti-diagonal t, and the one that entered from the column on the left, to bases that moved by
  // `by`.
  void lower(int buffer, int t, const T* by) {
    for (int s = 0; s < states(); ++s)
      for (int i = t < 0 ? 0 : block_.begin(t); i < reach(t); i += W)
        store(state(buffer, s) + i, load(state(buffer, s) + i) - load(by + i));
  }

  // Moves the bases back to where they were before anti-diagonal t.
  void move_back(int t) {
    for (int i = rebased_from(t); i < rebased_to(t); i += W) bases_.move(i, -load(bases_.kept(t) + i));
    bases_.measure(rebased_from(t), rebased_to(t));
  }

  // Propagates `flow`, the derivatives with respect to the states of the block's last column, back through the block.
  // Writes the derivatives with respect to the column on its left to `next`.
  template <Reducer reducer>
  DROPDTW_FLAT void backward(Column<T> left, const T* kept, const T* flow, T* next) {
    const bool based = bases_.wanted(), reads_match = lines_.reads_match();
    int now = 0, last = 1, before = 2;
    for (int b = 0; b < 3; ++b)
      for (int s = 0; s < states(); ++s) std::memset(flows(b, s) - W, 0, stride_ * sizeof(T));
    std::memset(next, 0, std::size_t(states()) * (K_ + 1) * sizeof(T));
    restore(now, block_.diagonals - 1, left, kept);
    restore(last, block_.diagonals - 2, left, kept);
    for (int t = block_.diagonals - 1; t >= 0; --t) {
      restore(before, t - 2, left, kept);
      // States are stored as computed, so shift them if bases moved just before t or just before t − 1.
      const bool moves = based && bases_.due(t), moved = based && bases_.due(t - 1);
      if (moves) lower(last, t - 1, bases_.kept(t));
      if (moves || moved) lower(before, t - 2, bases_.kept(moves ? t : t - 1));
      if (const int i = t - (block_.last - block_.first); i >= 0)
        for (int s = 0; s < states(); ++s) flows(now, s)[i] += flow[std::size_t(s) * (K_ + 1) + i];
      if (t == 0 && block_.first == 0)  // alignments begin here: what flows here stops, even where one edge arrives
        for (int s = 0; s < states(); ++s) flows(now, s)[0] = 0;
      const Line<T> these = line(now, last, before, t, reads_match ? match_.of(t) : nullptr);
      T* const into_costs = grad_costs_.get() + W + std::size_t(t % group) * stride_;
      T *const near = flows(last, 0), *const here = flows(now, 0);
      const Flows<T> to{{flows(before, 0) - 1, near, near - 1, here},
                        {into_costs, grad_x_.get() + along(t), grad_z_.get() + W, nullptr},
                        here,
                        grad_charges_.get()};
      const int begin = block_.begin(t), end = block_.end(t);
      std::memset(into_costs + begin, 0, (end - begin) * sizeof(T));
      if (problem_.table->border_ends != nullptr)
        for (const int i : {on_row_0(t) ? 0 : -1, on_column_0(t) ? t : -1})
          if (i >= 0) lines_.template leave_border<reducer>(these, to, i);
      extend_runs_back(now, last, t);
      lines_.template leave<reducer>(these, to, begin, end);
      if (moves) restore(last, t - 1, left, kept);
      if (moves || moved) restore(before, t - 2, left, kept);
      if (moves) move_back(t);
      if (t % group == 0) {
        write_costs(t);
        write_charges();
      }
      if (t <= K_)
        for (int s = 0; s < states(); ++s) {
          next[std::size_t(s) * (K_ + 1) + t] += flows(last, s)[t];
          flows(last, s)[t] = 0;
        }
      // Only these lanes of the anti-diagonal were written, so only they need clearing.
      for (int s = 0; s < states(); ++s)
        std::memset(flows(now, s) + block_.begin(t) - W, 0, (block_.end(t) - block_.begin(t) + 2 * W) * sizeof(T));
      const int free = now;
      now = last;
      last = before;
      before = free;
    }
  }

  // Adds the sums accumulated per lane to the derivatives with respect to the charges, in double precision.
  void write_charges() {
    for (int k = 0; k < charge_count * W; ++k) {
      problem_.grad_charges[k / W] += grad_charges_[k];
      grad_charges_[k] = 0;
    }
  }

  // The backward pass of `extend_runs`.
  void extend_runs_back(int now, int last, int t) {
    block_.each_below_nothing(t, [&](int i) {
      for (int s = 0; s < states(); ++s)
        if (Cost cost{}; block_.follows_run(s, cost)) {
          const T flow = state(now, s)[i] < inf<T> ? flows(now, s)[i] : T(0);
          flows(last, s)[i] += flow;
          if (cost == Cost::drop_x) grad_x_[along(t) + i] += flow;
          flows(now, s)[i] = 0;
        }
    });
  }

  // Writes the derivatives with respect to the match costs of anti-diagonals [t, t + group) back to rows and columns.
  DROPDTW_FLAT void write_costs(int t) {
    const int until = smaller(t + group, block_.diagonals), bottom = block_.high[until - 1];
    const std::ptrdiff_t stride = stride_, row = problem_.grad_row;
    const T* const in = grad_costs_.get() + W;
    for (int i = larger(block_.low[t], 1); i <= bottom;) {
      // The cell of row i on anti-diagonal t.
      T* const out = problem_.grad_match + (i - 1) * row + block_.first + t - i - 1;
      if (!block_.narrow() && until - t == group && i + W - 1 <= bottom && block_.full(i, t) &&
          block_.full(i + W - 1, t)) {
        for (int g = 0; g < group; g += W) transpose(in + g * stride + i, stride, out + g, row - 1);
        i += W;
        continue;
      }
      int from, to;
      block_.matchable(i, from, to);
      const int start = block_.first + t - i;
      for (int g = larger(from - start, 0); g < smaller(to - start, until - t); ++g)
        if (i >= block_.low[t + g] && i <= block_.high[t + g]) out[g] = in[g * stride + i];
      ++i;
    }
  }

  Buffer<T> grad_[3], grad_costs_, grad_x_, grad_z_, grad_charges_;
};

}  // namespace dropdtw::DROPDTW_ISA
