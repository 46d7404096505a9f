// Some pairs of sequences on one thread: W at a time, one per vector lane (lanes.hpp), or one by one (wave.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "dispatch.hpp"
#include "pair_request.hpp"
#include "parallel.hpp"
#include "soft.hpp"
#include "widen.hpp"

namespace dropdtw {

DROPDTW_CHOOSE(SoftKernels, soft_kernels)

// The X at order_x[first, first + count), against one Z after another, on one thread.
template <class T>
class PairTask {
 public:
  PairTask(const Pairs<T>& pairs, const Kernels<T>& kernels, const Alive& alive, const std::vector<int>& order_x,
           int first, int count, Kept<T>* kept)
      : pairs_(pairs),
        kernels_(kernels),
        alive_(alive),
        W_(kernels.width),
        first_(first),
        count_(count),
        chosen_(order_x.begin() + first, order_x.begin() + first + count),
        lengths_(W_, 0),
        kept_(kept),
        percentile_(kernels) {
    for (int lane = 0; lane < count; ++lane) lengths_[lane] = pairs.xs.length(chosen_[lane]);
    longest_ = lengths_[count - 1];
    limit_ = pairs.limit;
    const auto negative = [](const Price<T>& p) { return p.source != Source::number || p.number < 0; };
    if (negative(pairs.drop_x) || negative(pairs.drop_z) || pairs.binary || !pairs.table->built_in)
      lane_limit_ = std::numeric_limits<T>::infinity();
    else
      lane_limit_ = T(limit_);
  }

  std::int64_t abandoned = 0, spared = 0, kept = 0;

  // Whether pairs of this request are computed in lanes if their lengths allow it. With a smaller γ, values divided by
  // γ would exceed the exponents of soft lanes.
  static bool in_lanes(const Pairs<T>& pairs, const Kernels<T>& kernels) {
    if (pairs.suggests_x || pairs.suggests_z || pairs.greedy) return false;
    const auto matches = [](const Edge& e) { return e.cost == Cost::match; };
    if (pairs.reducer == Reducer::hard)
      return !pairs.window ||
             (kernels.unrolled(*pairs.table) && std::all_of(pairs.table->begin(), pairs.table->end(), matches));
    return pairs.reducer == Reducer::soft && kernels.unrolled(*pairs.table) && soft_kernels<T>().family != nullptr &&
           !pairs.window && pairs.gamma >= (sizeof(T) == 4 ? 1e-3 : 1e-6);
  }

  // Aligns Z number `a` of the order, which is sequence i, in lanes.
  void lanes(int a, int i) {
    open(i);
    // How a pair is computed depends only on its own lengths. Lengths ascend, so pairs with short sums come first.
    int lane = 0;
    while (lane < count_ && !long_sums<T>(K_, lengths_[lane])) ++lane;
    if (lane > 0) solve_lanes(a, 0, lane);
    // Lanes have no bases for these.
    const bool bare = pairs_.window || pairs_.reducer == Reducer::soft || !kernels_.unrolled(*pairs_.table);
    for (; lane < count_ && (bare || needs_double<T>(K_, lengths_[lane])); ++lane) alone(a, lane);
    if (lane < count_) solve_lanes(a, lane, count_);
  }

  // The same, one pair at a time.
  void one_by_one(int a, int i) {
    open(i);
    for (int lane = 0; lane < count_ && alive_(); ++lane) alone(a, lane);
  }

 private:
  void open(int i) {
    i_ = i;
    z_ = pairs_.zs.of(i);
    if (pairs_.zs.length(i) != K_) bands_.assign(count_, std::nullopt);
    K_ = pairs_.zs.length(i);
  }

  // Stores the value of a pair, and counts the cells that were skipped.
  void take(int a, int lane, double value, std::int64_t left) {
    if (pairs_.once && a > first_ + lane) return;  // this task also has the pair in the other order
    const int m = pairs_.xs.count, j = chosen_[lane];
    pairs_.out[std::size_t(i_) * m + j] = value;
    if (pairs_.once) pairs_.out[std::size_t(j) * m + i_] = value;
    ++kept;
    if (left > 0) ++abandoned, spared += left;
  }

  // X packed into vectors of W elements. With (lane, at) = place(e, w), number w of vector e is element `at` of the X
  // in that lane, or 0 if there is none.
  struct Packed {
    std::vector<T> x, scale;
  };
  template <class Place>
  void pack(Packed& to, int columns, const Place& place) const {
    const int d = pairs_.zs.d;
    to.x.assign(std::size_t(columns) * d * W_, T(0));
    to.scale.assign(pairs_.xs.scale == nullptr ? 0 : std::size_t(columns) * W_, T(1));
    for (int w = 0; w < W_; ++w)
      for (int e = 0; e < columns; ++e) {
        const auto [lane, at] = place(e, w);
        if (lane >= count_ || at >= lengths_[lane]) break;
        const T* const from = pairs_.xs.of(chosen_[lane]) + std::size_t(at) * d;
        for (int f = 0; f < d; ++f) to.x[(std::size_t(e) * d + f) * W_ + w] = from[f];
        if (!to.scale.empty()) to.scale[std::size_t(e) * W_ + w] = pairs_.xs.scale_of(chosen_[lane])[at];
      }
  }

  Feed<T> feed(const Packed& packed) const {
    Feed<T> found{};
    found.metric = pairs_.metric;
    found.d = pairs_.zs.d;
    found.z = z_;
    found.x = packed.x.data();
    found.scale_z = pairs_.zs.scale_of(i_);
    found.scale_x = packed.scale.empty() ? nullptr : packed.scale.data();
    return found;
  }

  // All match costs of the pair in a lane, without thresholds or band.
  Costs<T> costs(int lane) {
    const int N = lengths_[lane], columns = (N + W_ - 1) / W_;
    if (int(packed_.size()) < count_) packed_.resize(count_);
    Packed& packed = packed_[lane];
    if (packed.x.empty()) pack(packed, columns, [&](int e, int w) { return std::pair(lane, e * W_ + w); });
    block_.resize(std::size_t(K_) * columns * W_);
    kernels_.costs(feed(packed), 0, K_, 0, columns, {columns}, block_.data());
    return {block_.data(), K_, N, std::ptrdiff_t(columns) * W_};
  }

  const Band* band(int lane) {
    if (!pairs_.window) return nullptr;
    if (!bands_[lane]) {
      const int N = lengths_[lane];
      bands_[lane] = pairs_.transposed ? transposed(pairs_.window->of(N, K_), K_) : pairs_.window->of(K_, N);
    }
    return &*bands_[lane];
  }

  // The price of a pair: a number, or what a rule finds for this pair; +∞ for one number per element. Thresholds are
  // not `banded`: they read all match costs.
  T price(const Price<T>& p, int lane, const Costs<T>* costs, bool banded = true) {
    if (p.source == Source::number) return T(p.number);
    if (p.source == Source::each) return std::numeric_limits<T>::infinity();
    if (p.source == Source::percentile)
      return known_percentile_ != T(0) ? known_percentile_ : T(percentile_.of(*costs, p.number));
    return T(look(*costs, banded ? band(lane) : nullptr, [](const auto& looked) { return suggested(looked); }));
  }

  // Calls f with the match costs as the caller has them, ∞ outside the band.
  template <class F>
  double look(const Costs<T>& costs, const Band* limits, const F& f) const {
    const auto allowed = [&](int i, int j) {
      return limits == nullptr || (pairs_.transposed ? limits->allows(j, i) : limits->allows(i, j));
    };
    return f(Looked(costs, pairs_.transposed, allowed));
  }

  struct Prices {
    T drop_x, drop_z, threshold;
  };

  Prices prices(int lane, const Costs<T>* costs) {
    Prices found;
    found.drop_x = price(pairs_.drop_x, lane, costs);
    found.drop_z = pairs_.drop_z == pairs_.drop_x ? found.drop_x : price(pairs_.drop_z, lane, costs);
    found.threshold = pairs_.binary ? price(pairs_.binary->threshold, lane, costs, false) : T(0);
    if (pairs_.binary && !pairs_.binary->inclusive)
      found.threshold = std::nextafter(found.threshold, -std::numeric_limits<T>::infinity());
    return found;
  }

  // Prices in lanes, where percentiles may be kept.
  Prices lane_prices(int lane) {
    std::atomic<T>* const kept = kept_ == nullptr ? nullptr : &kept_->of(i_, chosen_[lane]);
    known_percentile_ = kept == nullptr ? T(0) : kept->load(std::memory_order_relaxed);
    const bool known = known_percentile_ != T(0);
    Costs<T> read{};
    if (pairs_.reads_costs() && !known) read = costs(lane);
    const Prices found = prices(lane, &read);
    known_percentile_ = 0;
    if (kept != nullptr && !known) {
      const T percentile = pairs_.drop_x.is_rule() ? found.drop_x : found.drop_z;
      kept->store(percentile, std::memory_order_relaxed);
    }
    return found;
  }

  void prepare_lanes() {
    const int states = pairs_.table->states;
    pack(in_lanes_, longest_, [](int e, int w) { return std::pair(w, e); });
    rows_.resize(std::size_t(pairs_.reducer == Reducer::soft ? 2 * states : states) * (longest_ + 1) * W_);
    if (sizeof(T) == 4) bases_.resize(std::size_t(longest_ / lane_tile + 1) * W_);
    drop_x_.resize(std::size_t(longest_) * W_);
    fill(drop_x_, pairs_.drop_x, longest_, std::vector<T>(W_, T(pairs_.drop_x.number)));
    values_.resize(W_);
    thresholds_.assign(W_, T(0));
  }

  void fill(std::vector<T>& to, const Price<T>& p, int length, const std::vector<T>& lanes) const {
    to.resize(std::size_t(length) * W_);
    for (int k = 0; k < length; ++k)
      for (int w = 0; w < W_; ++w) to[std::size_t(k) * W_ + w] = p.source == Source::each ? p.each[k] : lanes[w];
  }

  // Solves the pairs in lanes [from, to); the other lanes stay empty.
  void solve_lanes(int a, int from, int to) {
    if (in_lanes_.x.empty()) prepare_lanes();
    std::vector<std::int32_t> some(W_, 0);
    std::copy(lengths_.begin() + from, lengths_.begin() + to, some.begin() + from);
    std::vector<T> of_x(W_, T(pairs_.drop_x.number)), of_z(W_, T(pairs_.drop_z.number));
    for (int lane = from; lane < to; ++lane) {
      if (pairs_.once && a > first_ + lane) continue;
      if (!alive_()) return;
      const Prices found = lane_prices(lane);
      of_x[lane] = found.drop_x;
      of_z[lane] = found.drop_z;
      thresholds_[lane] = found.threshold;
    }
    if (pairs_.drop_x.is_rule()) fill(drop_x_, pairs_.drop_x, longest_, of_x);
    if (pairs_.drop_z.is_rule() || int(drop_z_.size()) != K_ * W_) fill(drop_z_, pairs_.drop_z, K_, of_z);
    LaneProblem<T> problem{};
    problem.table = pairs_.table;
    problem.K = K_;
    problem.N = lengths_[to - 1];
    problem.feed = feed(in_lanes_);
    if (pairs_.binary) {
      problem.feed.binary = true;
      problem.feed.low = pairs_.binary->low;
      problem.feed.high = pairs_.binary->high;
      problem.feed.thresholds = thresholds_.data();
    }
    if (pairs_.window) limit_lanes(problem, from, to);
    problem.lengths = some.data();
    problem.drop_x = drop_x_.data();
    problem.drop_z = drop_z_.data();
    for (int c = 0; c < charge_count; ++c) problem.charges[c] = pairs_.charges[c];
    problem.rows = rows_.data();
    problem.bases = long_sums<T>(K_, lengths_[from]) ? bases_.data() : nullptr;
    problem.values = values_.data();
    problem.limit = lane_limit_;
    problem.tick = alive_.tick;
    problem.self = alive_.self;
    const int done = pairs_.reducer == Reducer::soft
                         ? soft_kernels<T>().family[pairs_.table->family](problem, pairs_.gamma)
                         : kernels_.of(*pairs_.table).solve_lanes(problem);
    if (done < 0) throw std::bad_alloc();
    const int left = K_ - done;  // rows that were not computed
    if (!alive_()) return;
    for (int lane = from; lane < to; ++lane) take(a, lane, values_[lane], std::int64_t(left) * lengths_[lane]);
  }

  // Sets the band of each lane, and the columns that cover all of them.
  void limit_lanes(LaneProblem<T>& problem, int from, int to) {
    if (limited_K_ != K_ || limited_from_ != from || limited_to_ != to) {
      limited_K_ = K_, limited_from_ = from, limited_to_ = to;
      start_.resize(std::size_t(K_) * W_);
      stop_.resize(start_.size());
      from_.assign(K_, longest_);
      to_.assign(K_, 0);
      inner_from_.assign(K_, 0);
      inner_to_.assign(K_, longest_);
      for (int w = 0; w < W_; ++w) {
        const int lane = w >= from && w < to ? w : from;  // an empty lane copies the first one
        const Band& here = *band(lane);
        for (int i = 0; i < K_; ++i) {
          start_[std::size_t(i) * W_ + w] = T(here.start[i]);
          stop_[std::size_t(i) * W_ + w] = T(here.stop[i]);
          from_[i] = std::min(from_[i], std::int32_t(here.start[i]));
          to_[i] = std::max(to_[i], std::int32_t(here.stop[i]));
          inner_from_[i] = std::max(inner_from_[i], std::int32_t(here.start[i]));
          inner_to_[i] = std::min(inner_to_[i], std::int32_t(here.stop[i]));
        }
      }
    }
    problem.feed.start = start_.data();
    problem.feed.stop = stop_.data();
    problem.feed.from = from_.data();
    problem.feed.to = to_.data();
    problem.feed.inner_from = inner_from_.data();
    problem.feed.inner_to = inner_to_.data();
  }

  void alone(int a, int lane) {
    if (pairs_.once && a > first_ + lane) return;
    const int N = lengths_[lane];
    Problem<T> pair{pairs_.table, K_, N, pairs_.reducer, pairs_.gamma, Want::value, 0};
    const bool by_kernel = pairs_.metric != Metric::cosine && pairs_.zs.d <= 8 && !pairs_.binary && !pairs_.greedy;
    Costs<T> known{};
    if (pairs_.reads_costs() || !by_kernel) known = costs(lane);
    const Prices found = prices(lane, &known);
    const auto spread = [](std::vector<T>& to, const Price<T>& p, T number, int n) {
      to.assign(n, number);
      if (p.source == Source::each) std::copy_n(p.each, n, to.begin());
      return to.data();
    };
    pair.drop_x = spread(alone_x_, pairs_.drop_x, found.drop_x, N);
    pair.drop_z = spread(alone_z_, pairs_.drop_z, found.drop_z, K_);
    std::copy_n(pairs_.charges, charge_count, pair.charges);
    if (pairs_.suggests_x || pairs_.suggests_z) suggest_openings(lane, known, pair);
    if (by_kernel) {
      pair.metric = pairs_.metric;
      pair.z = z_;
      pair.x = pairs_.xs.of(chosen_[lane]);
      pair.d = pairs_.zs.d;
    } else {
      if (pairs_.binary) count(known, found.threshold);
      if (pairs_.greedy) drop_first(lane, known);
      pair.match = known.data;
      pair.row = known.pitch;
      pair.column = 1;
    }
    pair.limit = pairs_.reducer == Reducer::hard ? limit_ : __builtin_inf();
    pair.least = 0;
    if (const Band* const limits = band(lane)) {
      pair.band_start = limits->start.data();
      pair.band_stop = limits->stop.data();
    }
    pair.tick = alive_.tick;
    pair.self = alive_.self;
    if (solve_exactly(pair) == Status::no_memory) throw std::bad_alloc();
    if (alive_()) take(a, lane, pair.value, std::int64_t(pair.spared * double(K_) * N));
  }

  // Replaces match costs by `low` and `high`.
  void count(const Costs<T>& costs, T threshold) {
    for (int i = 0; i < costs.K; ++i)
      for (int j = 0; j < costs.N; ++j) {
        T& c = block_[i * costs.pitch + j];
        c = c <= threshold ? pairs_.binary->low : pairs_.binary->high;
      }
  }

  // Chance matches inside a run of drops split it in two, on each side that may drop. The openings that this adds
  // should cost as much as such matches can save.
  void suggest_openings(int lane, const Costs<T>& costs, Problem<T>& pair) {
    double of_x = usual(pair.drop_x, pair.N), of_z = usual(pair.drop_z, pair.K);
    if (pairs_.transposed) std::swap(of_x, of_z);
    const double gain = look(costs, band(lane), [&](const auto& looked) { return chance_gain(looked, of_x, of_z); });
    const double opening = gain / (int(pairs_.suggests_x) + int(pairs_.suggests_z));
    if (pairs_.suggests_x) pair.charges[int(Plus::open_x) - 1] = opening;
    if (pairs_.suggests_z) pair.charges[int(Plus::open_z) - 1] = opening;
  }

  // See `greedy` in tables/transforms.py.
  void drop_first(int lane, const Costs<T>& costs) {
    constexpr T never = std::numeric_limits<T>::infinity();
    std::vector<T> of_x(costs.N, never), of_z(costs.K, never);
    const Band* const limits = band(lane);
    for (int i = 0; i < costs.K; ++i)
      for (int j = 0; j < costs.N; ++j)
        if (limits == nullptr || limits->allows(i, j)) {
          of_x[j] = std::min(of_x[j], costs.row(i)[j]);
          of_z[i] = std::min(of_z[i], costs.row(i)[j]);
        }
    for (int i = 0; i < costs.K; ++i)
      for (int j = 0; j < costs.N; ++j)
        if (of_x[j] > alone_x_[j] || of_z[i] > alone_z_[i]) block_[i * costs.pitch + j] = never;
    for (int j = 0; j < costs.N; ++j)
      if (!(of_x[j] > alone_x_[j])) alone_x_[j] = never;
    for (int i = 0; i < costs.K; ++i)
      if (!(of_z[i] > alone_z_[i])) alone_z_[i] = never;
  }

  const Pairs<T>& pairs_;
  const Kernels<T>& kernels_;
  const Alive& alive_;
  const int W_, first_, count_;
  const std::vector<int> chosen_;
  std::vector<std::int32_t> lengths_;  // (W,), ascending; 0 for empty lanes
  int longest_ = 0, i_ = 0, K_ = 0;
  int limited_K_ = 0, limited_from_ = 0, limited_to_ = 0;
  const T* z_ = nullptr;
  double limit_;
  T lane_limit_;
  Kept<T>* const kept_;
  Percentile<T> percentile_;
  T known_percentile_ = 0;  // that of the pair at hand; 0: not known
  std::vector<std::optional<Band>> bands_;
  Packed in_lanes_;
  std::vector<Packed> packed_;  // each X by itself
  std::vector<T> block_, rows_, drop_x_, drop_z_, thresholds_, start_, stop_, alone_x_, alone_z_;
  std::vector<double> bases_, values_;
  std::vector<std::int32_t> from_, to_, inner_from_, inner_to_;
};

}  // namespace dropdtw
