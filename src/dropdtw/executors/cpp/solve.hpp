// Computes the value, the path or the derivatives of a problem, as waves over blocks of columns.
#pragma once
#include "back.hpp"

namespace dropdtw::DROPDTW_ISA {

// The edges into each state by rank, and where the rank is in the code of a cell.
template <class Tab>
struct Ways {
  Edge edge[Tab::states][most_edges<Tab>()] = {};
  int shift[Tab::states], mask[Tab::states];

  constexpr Ways() {
    for (int s = 0; s < Tab::states; ++s) {
      shift[s] = code_shift<Tab>(s);
      mask[s] = (1 << bits_for(in_degree<Tab>(s))) - 1;
    }
    for (int e = 0; e < edge_count<Tab>; ++e) edge[Tab::edges[e].dst][rank<Tab>(e)] = Tab::edges[e];
  }
};
template <class Tab>
inline constexpr Ways<Tab> ways{};

template <class Tab, class T>
class Solver {
  static constexpr int W = Register<T>::W;
  using Code = typename Wave<Tab, T>::Code;

 public:
  explicit Solver(Problem<T>& problem) : problem_(problem), K_(problem.K), N_(problem.N), wave_(problem) {}

  Status solve() {
    if (!wave_.prepare()) return Status::no_memory;
    if constexpr (!Tab::unrolled) {
      if (!weights_.resize(wave_.states())) return Status::no_memory;
      const bool gradients = problem_.want == Want::gradient;
      if (problem_.reducer == Reducer::soft) return gradients ? gradient<Reducer::soft>() : value<Reducer::soft>();
      if (problem_.reducer == Reducer::smooth)
        return gradients ? gradient<Reducer::smooth>() : value<Reducer::smooth>();
    }
    return problem_.want == Want::trace ? trace() : value<Reducer::hard>();
  }

 private:
  // Opens block b, in a division into blocks of `width` columns, with the rows down to `rows`.
  void open(int b, int width, int rows) { wave_.block_.open(b * width, smaller((b + 1) * width - 1, N_), rows); }

  bool prepare_columns(int kept) {
    const std::size_t rows = std::size_t(K_ + 1) * kept;
    return columns_.resize(wave_.states() * rows) && (!wave_.bases_.wanted() || bases_.resize(rows));
  }
  Column<T> column(int k) {
    const std::size_t rows = std::size_t(K_ + 1) * k;
    return {&columns_[wave_.states() * rows], wave_.bases_.wanted() ? &bases_[rows] : nullptr};
  }

  // Runs forward over blocks of `width` columns. Stores the column to the left of each block in columns_, and keeps the
  // last `kept` of them. Stops early if every alignment is certain to exceed the limit.
  template <Reducer reducer>
  Status sweep(int width, int kept) {
    const int blocks = (N_ + width) / width;
    if (!prepare_columns(kept)) return Status::no_memory;
    for (int b = 0; b < blocks; ++b) {
      open(b, width, K_);
      const Column<T> left = b == 0 ? Column<T>{} : column(b % kept);
      const Column<T> right = b + 1 < blocks ? column((b + 1) % kept) : Column<T>{};
      const Status s = wave_.template forward<reducer, false>(left, right, nullptr, nullptr);
      if (s != Status::done) return s;
      const int last = wave_.block_.last;
      if (reducer == Reducer::hard && right.states != nullptr && wave_.exceeds_limit(right, last)) {
        problem_.spared = double(N_ - last) / N_;
        return Status::abandoned;
      }
    }
    return Status::done;
  }

  template <Reducer reducer>
  Status value() {
    Status status;
    if (problem_.strip == nullptr) {
      wave_.block_.open(0, N_, K_);
      status = wave_.template forward<reducer, false>({}, {}, nullptr, nullptr);
    } else {
      status = sweep<reducer>(problem_.strip_width, 2);
    }
    if (status == Status::done) finish<reducer>();
    if (status == Status::abandoned) problem_.value = inf<double>;
    return status;
  }

  Status trace() {
    const double cells = double(K_ + 1 + 2 * W) * (N_ + 1), bytes = sizeof(Code) * wave_.codes_per_cell();
    int width = N_ + 1;
    if (problem_.strip != nullptr || cells * bytes > double(problem_.budget)) {
      // This width minimizes the memory for the choices of one block and the columns between blocks.
      width = int(__builtin_sqrt(double(N_) * wave_.states() * sizeof(T) / bytes)) + 1;
      if (problem_.strip != nullptr) width = larger(width, problem_.strip_width);
      width = smaller(width, N_ + 1);
    }
    const int blocks = (N_ + width) / width;
    if (blocks > 1) {
      if (const Status s = sweep<Reducer::hard>(width, blocks); s != Status::done) return s;
      finish<Reducer::hard>();
      if (end_ < 0) return Status::done;
    }
    int i = K_, j = N_;
    for (int b = blocks - 1; b >= 0; --b) {
      open(b, width, i);  // the rest of the path lies above row i
      const std::size_t n = wave_.block_.offset[wave_.block_.diagonals] * wave_.codes_per_cell() + W;
      auto* const chosen = static_cast<Code*>(problem_.scratch(problem_.owner, n * sizeof(Code)));
      if (chosen == nullptr) return Status::no_memory;
      const Column<T> left = b == 0 ? Column<T>{} : column(b);
      const Status s = wave_.template forward<Reducer::hard, true>(left, {}, nullptr, chosen);
      if (s != Status::done) return s;
      if (blocks == 1) {
        finish<Reducer::hard>();
        if (end_ < 0) return Status::done;
      }
      follow(chosen, i, j);
    }
    return Status::done;
  }

  // Traces the stored choices back from cell (i, j) in state end_ until the path leaves the block.
  void follow(const Code* chosen, int& i, int& j) {
    while (j >= wave_.block_.first && (i > 0 || j > 0)) {
      const Edge e = way_in(chosen, i, j);
      if (e.move != Move::same) {
        problem_.path_i[problem_.path_length] = i - 1;
        problem_.path_j[problem_.path_length] = j - 1;
        if (problem_.path_weight != nullptr) problem_.path_weight[problem_.path_length] = e.weight;
        problem_.path_cost[problem_.path_length++] = std::uint8_t(int(e.cost) | int(e.plus) << 2);
      }
      end_ = e.src;
      i -= e.move == Move::diag || e.move == Move::top;
      j -= e.move == Move::diag || e.move == Move::left;
    }
  }

  Edge way_in(const Code* chosen, int i, int j) {
    const Table& table = *problem_.table;
    const bool border = table.border_ends != nullptr;
    if (Cost cost{};
        wave_.block_.narrow() && !border && wave_.block_.below_nothing(i, j) && wave_.block_.follows_run(end_, cost))
      return {end_, end_, Move::left, cost, false};
    const int t = i + j - wave_.block_.first, lane = i - wave_.block_.begin(t);
    const std::size_t at = wave_.block_.offset[t];
    if constexpr (Tab::unrolled) {
      constexpr const Ways<Tab>& into = ways<Tab>;
      return into.edge[end_][chosen[at + lane] >> into.shift[end_] & into.mask[end_]];
    } else {
      const int rank = chosen[at * table.states + end_ * (wave_.block_.offset[t + 1] - at) + lane];
      const bool on_border = border && (i == 0 || j == 0);
      const int* const ends = on_border ? table.border_ends : table.ends;
      return (on_border ? table.border : table.edges)[(end_ == 0 ? 0 : ends[end_ - 1]) + rank];
    }
  }

  template <Reducer reducer>
  Status gradient() {
    // Keeps all states of a problem that fits the cache. For a larger one, keeps those of a block, so that they take
    // less than 1.3 times the memory of C even if each anti-diagonal takes up to two vectors more than it has cells.
    int width = N_ + 1;
    const int S = wave_.states();
    if (double(S) * (K_ + 1) * (N_ + 1) * sizeof(T) > double(1 << 22))
      width = smaller(width, larger(16, smaller(128, int(1.2 * N_ / S) - 2 * W)));
    const int blocks = (N_ + width) / width;
    const std::size_t size = std::size_t(S) * (K_ + 1);
    if (blocks > 1) {
      if (const Status s = sweep<reducer>(width, blocks); s != Status::done) return s;
      finish<reducer>();
    }
    Buffer<T> kept, flow, next;
    if (!flow.resize(size) || !next.resize(size) || !wave_.prepare_back()) return Status::no_memory;
    for (std::size_t k = 0; k < size; ++k) flow[k] = 0;
    for (int b = blocks - 1; b >= 0; --b) {
      const Column<T> left = b == 0 ? Column<T>{} : column(b);
      open(b, width, K_);
      if (!kept.resize(S * wave_.block_.offset[wave_.block_.diagonals] + W)) return Status::no_memory;
      if (!wave_.bases_.keep(wave_.block_.diagonals)) return Status::no_memory;
      const Status s = wave_.template forward<reducer, false>(left, {}, kept.get(), nullptr);
      if (s != Status::done) return s;
      if (b == blocks - 1) {
        if (blocks == 1) finish<reducer>();
        if (problem_.value == inf<double>) return Status::done;
        for (int s = 0; s < S; ++s) flow[std::size_t(s) * (K_ + 1) + K_] = T(weights_[s]);
      }
      wave_.template backward<reducer>(left, kept.get(), flow.get(), next.get());
      std::memcpy(flow.get(), next.get(), size * sizeof(T));
    }
    wave_.write_drops();
    return Status::done;
  }

  // Computes the value from the final states, and their weights.
  template <Reducer reducer>
  void finish() {
    const Table& table = *problem_.table;
    const double base = wave_.bases_.of(K_);
    double m = inf<double>;
    end_ = -1;
    for (int k = 0; k < table.final_count; ++k)
      if (double(wave_.corner(table.final[k])) < m) m = wave_.corner(end_ = table.final[k]);
    problem_.value = base + m;
    if constexpr (reducer != Reducer::hard) {
      for (int s = 0; s < wave_.states(); ++s) weights_[s] = 0;
      if (end_ < 0) return;
      const auto above = [&](int k) { return double(wave_.corner(table.final[k])) - m; };
      const auto weight = [&](int k) { return table.final_count == 1 ? 1 : __builtin_exp(-above(k) / problem_.gamma); };
      double total = 0, mean = 0;
      for (int k = 0; k < table.final_count; ++k) {
        total += weight(k);
        mean += weight(k) == 0 ? 0 : weight(k) * above(k);
      }
      mean /= total;
      problem_.value = base + (reducer == Reducer::soft ? m - problem_.gamma * __builtin_log(total) : m + mean);
      for (int k = 0; k < table.final_count; ++k) {
        const double p = weight(k) / total;
        if (p > 0)
          weights_[table.final[k]] = reducer == Reducer::soft ? p : p * (1 - (above(k) - mean) / problem_.gamma);
      }
    }
  }

  Problem<T>& problem_;
  const int K_, N_;
  std::conditional_t<Tab::unrolled, Wave<Tab, T>, Back<T>> wave_;
  Buffer<T> columns_;       // the states of the column to the left of each block
  Buffer<double> bases_;    // and the bases of its rows
  Buffer<double> weights_;  // of the states of the last cell: the derivatives of a soft or smooth value
  int end_ = -1;            // the state that the path is in
};

}  // namespace dropdtw::DROPDTW_ISA
