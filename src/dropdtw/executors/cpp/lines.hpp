// The cells of an anti-diagonal, for a table that is read at run time.
//
// Each edge is a loop over the lanes of a line, so reading the edge costs little. If all edges into a state have the
// same price, it is added once, after the minimum, as in cell.hpp.
#pragma once
#include "block.hpp"
#include "fold.hpp"

namespace dropdtw::DROPDTW_ISA {

// By lane: the states of the neighbors (by Move) and of the cells themselves, state 0 first, and the prices (by Cost).
template <class T>
struct Line {
  const T* from[4];
  const T* prices[4];  // null for Cost::free
  const T* descents;   // null without bases (base.hpp)
  T* here;
  const T *z = nullptr, *x = nullptr;  // if set, match costs that states share are the squares of z − x
};

// Where derivatives go, in the same order.
template <class T>
struct Flows {
  T* from[4];
  T* prices[4];
  T* here;
  T* charges;  // a vector of partial sums for each
};

template <class T>
class Lines {
  static constexpr int W = Register<T>::W;
  static constexpr int chunk = 512;  // lanes that pass through all states before the next ones, so that they stay in L1

  enum class Adds { nothing, price, charge, all };

  struct Way {
    int move, cost, plus;
    int own;  // the price that it adds itself; Cost::free if all edges into its state share the price
    bool descends;
    std::ptrdiff_t offset;  // of the state that it comes from
    T weight, charge;
    Adds adds;  // what it adds to the state that it comes from
    // On the line at hand: where it reads.
    const T *from, *price, *descents;
  };

  struct State {
    int first, count;  // its ways
    bool shares;       // whether they have the same price
    bool bare;         // whether nothing else is added
    int price;         // the shared price; Cost::free if there is none
    T weight;
  };

 public:
  bool prepare(const Table& table, const double* charges, double gamma, int stride) {
    states_ = table.states;
    stride_ = stride;
    soft_ = Fold<T, Reducer::soft>(gamma);
    smooth_ = Fold<T, Reducer::smooth>(gamma);
    const bool border = table.border_ends != nullptr;
    const int count = table.ends[states_ - 1], border_count = border ? table.border_ends[states_ - 1] : 0;
    if (!ways_.resize(count + border_count) || !state_.resize(states_) || !border_.resize(states_) ||
        !rows_.resize(std::size_t(table.most_edges) * W) || !zeros_.resize(stride))
      return false;
    for (int k = 0; k < stride; ++k) zeros_[k] = 0;
    for (int k = 0; k < count + border_count; ++k) {
      const Edge& e = k < count ? table.edges[k] : table.border[k - count];
      const bool down = e.move == Move::diag || e.move == Move::top;
      const T charge = e.plus == Plus::none ? T(0) : T(charges[int(e.plus) - 1]);
      ways_[k] = {int(e.move), int(e.cost), int(e.plus),   int(e.cost), down,    std::ptrdiff_t(e.src) * stride,
                  T(e.weight), charge,      Adds::nothing, nullptr,     nullptr, nullptr};
    }
    for (int s = 0, first = 0, on_border = count; s < states_; ++s) {
      state_[s] = {first, table.ends[s] - first, true, false, int(Cost::free), 1};
      first = table.ends[s];
      border_[s] = {on_border, border ? count + table.border_ends[s] - on_border : 0, false, false, int(Cost::free), 1};
      on_border += border_[s].count;
      Way* const into = &ways_[state_[s].first];
      for (int k = 1; k < state_[s].count; ++k)
        state_[s].shares &= into[k].cost == into[0].cost && into[k].weight == into[0].weight;
      if (state_[s].count == 0 || !state_[s].shares) continue;
      state_[s].price = into->cost;
      state_[s].weight = into->weight;
      for (int k = 0; k < state_[s].count; ++k) into[k].own = int(Cost::free);
    }
    descend(nullptr);
    return true;
  }

  // Whether derivatives depend on match costs, apart from the values of states.
  bool reads_match() const {
    for (int s = 0; s < states_; ++s)
      for (int k = 0; k < state_[s].count; ++k)
        if (!state_[s].shares && ways_[state_[s].first + k].cost == int(Cost::match)) return true;
    return false;
  }

  // Sets where each edge reads the states that it comes from, and what it pays. What it does not pay is read from
  // zeros.
  void connect(const Line<T>& line) {
    if (line.descents != descents_) descend(line.descents);
    const T* const prices[] = {line.prices[0], line.prices[1], line.prices[2], zeros_.get() + W};
    const int count = state_[states_ - 1].first + state_[states_ - 1].count;
    for (Way *way = ways_.get(), *const end = way + count; way < end; ++way) {
      way->from = line.from[way->move] + way->offset;
      way->price = prices[way->own];
    }
  }

  // The hard minima of some vectors, from lane i on, after `connect`. Prices may have moved since.
  template <int vectors, bool codes, bool squares = false>
  DROPDTW_INLINE void least_of(const Line<T>& line, int i, std::uint8_t* chosen, std::size_t length) const {
    const Way* way = ways_.get();
    T* out = line.here + i;
    for (const State *state = state_.get(), *const last = state + states_; state < last; ++state, out += stride_) {
      Vec<T> best[vectors];
      Mask<T> rank[vectors];
      unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA {
        best[u] = all<T>(inf<T>);
        rank[u] = Mask<T>{};
      });
      const auto take = [&](auto u, int k, Vec<T> v) DROPDTW_INLINE_LAMBDA {
        if constexpr (codes) {
          const Mask<T> better = v < best[u];
          rank[u] = better ? (Mask<T>{} + k) : rank[u];
          best[u] = better ? v : best[u];
        } else {
          best[u] = least<T>(best[u], v);
        }
      };
      const Way* const end = way + state->count;
      int k = 0;
      if (!codes && way < end && way->adds == Adds::nothing) {
        const T* const from = way->from + i;
        unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA { best[u] = load(from + u * W); });
        ++way;
      }
      for (; way < end; ++way, ++k) {
        const T* const from = way->from + i;
        if (way->adds == Adds::nothing) {
          unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA { take(u, k, load(from + u * W)); });
        } else if (way->adds == Adds::charge) {
          const T charge = way->charge;
          unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA { take(u, k, load(from + u * W) + charge); });
        } else if (way->adds == Adds::price) {
          const T* const price = line.prices[way->own] + i;
          const T weight = way->weight;
          unrolled<vectors>(
              [&](auto u) DROPDTW_INLINE_LAMBDA { take(u, k, load(from + u * W) + load(price + u * W) * weight); });
        } else {
          Way here = *way;
          if (here.own != int(Cost::free)) here.price = line.prices[here.own];
          unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA { take(u, k, arriving(here, i + u * W)); });
        }
      }
      if (squares && line.z != nullptr && state->price == int(Cost::match)) {
        const T *const z = line.z + i, *const x = line.x + i, weight = state->weight;
        unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA {
          const Vec<T> gap = load(z + u * W) - load(x + u * W);
          store(out + u * W, best[u] + rounded<T>(gap * gap) * weight);
        });
        continue;
      }
      const Price price(line, *state, i);
      unrolled<vectors>([&](auto u) DROPDTW_INLINE_LAMBDA {
        store(out + u * W, price.paid(best[u], u * W));
        if constexpr (codes) {
          const auto narrow = __builtin_convertvector(rank[u], typename Register<T>::Byte);
          std::memcpy(chosen + u * W, &narrow, sizeof narrow);
        }
      });
      if constexpr (codes) chosen += length;
    }
  }

  // Computes all states of the lanes [begin, end). With `codes`, stores the ranks of the best edges: those of a state
  // are `length` bytes after those of the state before.
  template <Reducer reducer, bool codes>
  DROPDTW_FLAT void enter(const Line<T>& line, int begin, int end, std::uint8_t* chosen, std::size_t length) {
    connect(line);
    if constexpr (reducer == Reducer::hard) {
      constexpr int most = DROPDTW_BYTES == 64 ? 8 : 4;  // vectors at a time: best values and ranks stay in registers
      int i = begin;
      if constexpr (!codes)
        for (; i + 2 * most * W <= end; i += 2 * most * W) least_of<2 * most, false>(line, i, nullptr, 0);
      for (; i + most * W <= end; i += most * W) least_of<most, codes>(line, i, chosen + (i - begin), length);
      for (; i < end; i += W) least_of<1, codes>(line, i, chosen + (i - begin), length);
    } else {
      for (int i = begin; i < end; i += chunk)
        for (int s = 0; s < states_; ++s) {
          const State state = state_[s];
          const Price price(line, state, i);
          T* const out = line.here + s * stride_ + i;
          const auto keep = [&](int k, Vec<T> v) DROPDTW_INLINE_LAMBDA { store(out + k, price.paid(v, k)); };
          const int n = smaller(chunk, end - i);
          if (state.count == 0)
            for (int k = 0; k < n; k += W) store(out + k, all<T>(inf<T>));
          else
            reading(state, i, [&](const auto& read) DROPDTW_INLINE_LAMBDA {
              if (state.count == 1)
                for (int k = 0; k < n; k += W) keep(k, read(0, k));
              else
                fold<reducer>().reduce(read, state.count, n, keep);
            });
        }
    }
  }

  // Distributes the derivatives with respect to the states of the lanes [begin, end) over what they were computed from.
  template <Reducer reducer>
  DROPDTW_FLAT void leave(const Line<T>& line, const Flows<T>& to, int begin, int end) {
    connect(line);
    for (int i = begin; i < end; i += chunk)
      for (int s = states_ - 1; s >= 0; --s) {
        const State state = state_[s];
        const Way* const into = &ways_[state.first];
        const T* const flow = to.here + s * stride_ + i;
        const int n = smaller(chunk, end - i);
        if (state.count == 0 || nothing(flow, n)) continue;
        if (state.shares && into->cost != int(Cost::free))
          for (int k = 0; k < n; k += W) add(to.prices[into->cost] + i + k, load(flow + k) * into->weight);
        // Where nothing flows, lanes outside the block may hold NaN.
        const auto credit = [&](int e, int k, Vec<T> v) DROPDTW_INLINE_LAMBDA {
          const Way& way = into[e];
          v = load(flow + k) == T(0) ? Vec<T>{} : v;
          add(to.from[way.move] + way.offset + i + k, v);
          if (!state.shares && way.cost != int(Cost::free)) add(to.prices[way.cost] + i + k, v * way.weight);
          if (way.plus != int(Plus::none)) add(to.charges + (way.plus - 1) * W, v);
        };
        if (state.count == 1)
          for (int k = 0; k < n; k += W) credit(0, k, load(flow + k));
        else
          reading(state, i, [&](const auto& read) DROPDTW_INLINE_LAMBDA {
            fold<reducer>().distribute(read, state.count, n, flow, credit);
          });
      }
  }

  // The same two for the cell of row 0 or column 0 in lane i, if the table has edges of its own there.
  template <Reducer reducer>
  void enter_border(const Line<T>& line, int i, std::uint8_t* chosen, std::size_t length) {
    for (int s = 0; s < states_; ++s) {
      const int count = bring_border(line, s, i);
      int best = 0;
      for (int k = 1; k < count; ++k)
        if (rows_[k * W] < rows_[best * W]) best = k;
      T& out = line.here[s * stride_ + i];
      out = count == 0 ? inf<T> : rows_[best * W];
      if (chosen != nullptr) chosen[s * length] = std::uint8_t(best);
      if constexpr (reducer != Reducer::hard)
        if (count > 1) {
          T found[W];
          fold<reducer>().values(rows_.get(), W, count, W, found);
          out = found[0];
        }
    }
  }
  // The hard minimum for W cells of the border.
  DROPDTW_FLAT void enter_border(const Line<T>& line, int i) const {
    for (int s = 0; s < states_; ++s) {
      Vec<T> best = all<T>(inf<T>);
      const int count = border_[s].count;
      for (const Way *way = &ways_[border_[s].first], *const end = way + count; way < end; ++way) {
        Vec<T> v = load(line.from[way->move] + way->offset + i) + way->charge;
        if (way->cost != int(Cost::free)) v += load(line.prices[way->cost] + i) * way->weight;
        best = least<T>(v, best);
      }
      store(line.here + s * stride_ + i, best);
    }
  }
  template <Reducer reducer>
  void leave_border(const Line<T>& line, const Flows<T>& to, int i) {
    for (int s = states_ - 1; s >= 0; --s) {
      T& flow = to.here[s * stride_ + i];
      if (const int count = flow == T(0) ? 0 : bring_border(line, s, i); count > 0) {
        const T alone[W] = {flow};
        fold<reducer>().weigh(rows_.get(), W, count, W, alone);
        for (int k = 0; k < count; ++k) {
          const Way& way = ways_[border_[s].first + k];
          const T share = rows_[k * W];
          to.from[way.move][way.offset + i] += share;
          if (way.cost != int(Cost::free)) to.prices[way.cost][i] += way.weight * share;
          if (way.plus != int(Plus::none)) to.charges[(way.plus - 1) * W] += share;
        }
      }
      flow = 0;
    }
  }

 private:
  // The price that all edges into a state share, from lane i on.
  struct Price {
    const T* at;
    T weight;
    DROPDTW_INLINE Price(const Line<T>& line, const State& state, int i)
        : at(state.price == int(Cost::free) ? nullptr : line.prices[state.price] + i), weight(state.weight) {}
    DROPDTW_INLINE Vec<T> paid(Vec<T> v, int k) const { return at == nullptr ? v : v + load(at + k) * weight; }
  };

  template <Reducer reducer>
  const auto& fold() const {
    if constexpr (reducer == Reducer::soft)
      return soft_;
    else
      return smooth_;
  }

  // Sets what each way adds, if it reads these descents (null: none).
  void descend(const T* descents) {
    descents_ = descents;
    for (int s = 0; s < states_; ++s) {
      State& state = state_[s];
      state.bare = state.shares;
      for (Way *way = &ways_[state.first], *const end = way + state.count; way < end; ++way) {
        const bool descends = way->descends && descents != nullptr;
        way->descents = descends ? descents : zeros_.get() + W;
        const bool pays = way->own != int(Cost::free), charged = way->charge != 0;
        way->adds = descends || (pays && charged) ? Adds::all
                    : charged                     ? Adds::charge
                    : pays                        ? Adds::price
                                                  : Adds::nothing;
        state.bare &= way->adds == Adds::nothing;
      }
    }
  }

  // Everything that arrives by an edge, without a shared price.
  static DROPDTW_INLINE Vec<T> arriving(const Way& way, int i) {
    return (load(way.from + i) + way.charge) + load(way.descents + i) + load(way.price + i) * way.weight;
  }

  // Calls f with a function that returns the values that arrive by edge e into a state, from lane i + k on.
  template <class F>
  DROPDTW_INLINE void reading(const State& state, int i, const F& f) const {
    const Way* const into = &ways_[state.first];
    if (state.bare)
      f([=](int e, int k) DROPDTW_INLINE_LAMBDA { return load(into[e].from + i + k); });
    else
      f([=](int e, int k) DROPDTW_INLINE_LAMBDA { return arriving(into[e], i + k); });
  }

  // Puts what arrives at a cell of the border into the first lane of each row; returns how many edges lead there.
  int bring_border(const Line<T>& line, int s, int i) {
    const State& state = border_[s];
    for (int k = 0; k < state.count; ++k) {
      const Way& way = ways_[state.first + k];
      T v = line.from[way.move][way.offset + i] + way.charge;
      if (way.descends && line.descents != nullptr) v += line.descents[i];
      if (way.cost != int(Cost::free)) v += line.prices[way.cost][i] * way.weight;
      store(rows_.get() + k * W, all<T>(v));
    }
    return state.count;
  }

  static DROPDTW_INLINE bool nothing(const T* flow, int n) {
    Mask<T> zero = load(flow) == T(0);
    for (int k = W; k < n; k += W) zero &= load(flow + k) == T(0);
    return everywhere<T>(zero);
  }

  static DROPDTW_INLINE void add(T* p, Vec<T> v) { store(p, load(p) + v); }

  int states_ = 0;
  std::ptrdiff_t stride_ = 0;
  const T* descents_ = nullptr;
  Fold<T, Reducer::soft> soft_{1};
  Fold<T, Reducer::smooth> smooth_{1};
  Buffer<Way> ways_;              // those of the border come last
  Buffer<State> state_, border_;  // where their ways are
  Buffer<T> rows_, zeros_;
};

}  // namespace dropdtw::DROPDTW_ISA
