// Tests the compiled kernels without Python: values, paths, derivatives, lanes and threads, at every level that was
// compiled and that this processor runs. test_kernels.py builds and runs it; so does `make windows`, for Windows.
//
// Every unrolled family is compared with a plain loop over its edges, in double precision, and the two tiers with each
// other. Prints what it did, and exits with 1 if something is wrong.
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dispatch.hpp"
#include "level.hpp"
#include "tables.hpp"
#include "workspace.hpp"

namespace {

using namespace dropdtw;

constexpr double infinite = std::numeric_limits<double>::infinity();
std::atomic<long long> checks{0}, failures{0};

void check(bool holds, const std::string& what) {
  ++checks;
  if (!holds && ++failures <= 20) std::printf("wrong: %s\n", what.c_str());
}

bool near(double found, double wanted, double tolerance) {
  return found == wanted || std::abs(found - wanted) <= tolerance * (1 + std::abs(wanted));
}

// One table with its edges sorted as kernels want them, with or without those that only some members of a family have.
struct Member {
  int number;
  std::string name;
  std::vector<Edge> edges;
  std::vector<int> ends, final;
  std::array<bool, 16> start;
  Table table;

  template <class Tab>
  static Member of(int number, const char* name, bool whole) {
    Member m{number, std::string(name) + (whole ? "" : ", smallest member"), {}, {}, {}, {}, {}};
    unsigned mask = 0;
    for (int s = 0; s < Tab::states; ++s) {
      unsigned bit = 1;
      for (const Edge& e : Tab::edges) {
        if (e.dst == s && (whole || !e.optional)) m.edges.push_back(e);
        if (whole && e.optional) mask |= bit;
        bit <<= 1;
      }
      m.ends.push_back(int(m.edges.size()));
      m.start[s] = Tab::start[s];
    }
    for (int s : Tab::final) m.final.push_back(s);
    m.table.mask = mask;
    return m;
  }

  // The table, pointing into this object.
  const Table& get() {
    table.family = number;
    table.built_in = true;
    table.states = int(ends.size());
    table.most_edges = 0;
    for (std::size_t s = 0; s < ends.size(); ++s)
      table.most_edges = std::max(table.most_edges, ends[s] - (s == 0 ? 0 : ends[s - 1]));
    table.edges = edges.data();
    table.ends = ends.data();
    table.start = start.data();
    table.final = final.data();
    table.final_count = int(final.size());
    return table;
  }
};

std::vector<Member> members() {
  std::vector<Member> found;
#define MEMBER(number, name)                                       \
  found.push_back(Member::of<dropdtw::name>(number, #name, true)); \
  found.push_back(Member::of<dropdtw::name>(number, #name, false));
  DROPDTW_FAMILIES(MEMBER)
#undef MEMBER
  return found;
}

// Random costs. Exact in single precision, so that both precisions solve the same problem.
struct Input {
  int K, N;
  std::vector<double> z, x, match, drop_x, drop_z;
  std::array<double, charge_count> charges{0.25, 0.5, 0.125};

  Input(int rows, int columns, unsigned seed) : K(rows), N(columns) {
    std::mt19937 random(seed);
    const auto draw = [&](std::size_t n) {
      std::vector<double> v(n);
      for (double& a : v) a = double(random() % 4096) / 4096;
      return v;
    };
    z = draw(K);
    x = draw(N);
    drop_x = draw(N);
    drop_z = draw(K);
    for (int i = 0; i < K; ++i)
      for (int j = 0; j < N; ++j) match.push_back((z[i] - x[j]) * (z[i] - x[j]));
  }
};

// The minimum, soft minimum or smooth minimum of some values.
double folded(const std::vector<double>& values, Reducer reducer, double gamma) {
  double low = infinite, total = 0, mean = 0;
  for (double v : values) low = std::min(low, v);
  if (reducer == Reducer::hard || low == infinite) return low;
  for (double v : values) {
    const double weight = std::exp((low - v) / gamma);
    total += weight;
    if (weight > 0) mean += weight * (v - low);
  }
  return reducer == Reducer::soft ? low - gamma * std::log(total) : low + mean / total;
}

// The value of a problem, by a loop over cells, states and edges.
double naive(const Member& m, const Input& in, Reducer reducer, double gamma) {
  const int S = int(m.ends.size());
  std::vector<double> grid(std::size_t(in.K + 1) * (in.N + 1) * S, infinite);
  const auto at = [&](int i, int j, int s) -> double& { return grid[(std::size_t(i) * (in.N + 1) + j) * S + s]; };
  for (int i = 0; i <= in.K; ++i)
    for (int j = 0; j <= in.N; ++j)
      for (int s = 0, e = 0; s < S; ++s) {
        std::vector<double> arriving;
        for (; e < m.ends[s]; ++e) {
          const Edge& edge = m.edges[e];
          const int up = edge.move == Move::diag || edge.move == Move::top;
          const int back = edge.move == Move::diag || edge.move == Move::left;
          if (i < up || j < back) continue;
          double cost = 0;
          if (edge.cost == Cost::match) cost = i > 0 && j > 0 ? in.match[(i - 1) * in.N + j - 1] : infinite;
          if (edge.cost == Cost::drop_x) cost = j > 0 ? in.drop_x[j - 1] : infinite;
          if (edge.cost == Cost::drop_z) cost = i > 0 ? in.drop_z[i - 1] : infinite;
          const double charge = edge.plus == Plus::none ? 0 : in.charges[int(edge.plus) - 1];
          arriving.push_back(at(i - up, j - back, edge.src) + edge.weight * cost + charge);
        }
        at(i, j, s) = i + j == 0 ? (m.start[s] ? 0 : infinite) : folded(arriving, reducer, gamma);
      }
  std::vector<double> last;
  for (int s : m.final) last.push_back(at(in.K, in.N, s));
  return folded(last, reducer, gamma);
}

bool go_on(void*) { return true; }

// What a kernel found.
template <class T>
struct Found {
  double value;
  std::vector<std::array<int, 3>> path;  // (i, j, what it pays), from end to start
  std::vector<double> weights;
  std::vector<T> match, drop_x, drop_z;
};

template <class T>
Found<T> solved(const Kernel<T>& kernel, Member& m, const Input& in, Reducer reducer, double gamma, Want want) {
  const std::vector<T> match(in.match.begin(), in.match.end()), drop_x(in.drop_x.begin(), in.drop_x.end()),
      drop_z(in.drop_z.begin(), in.drop_z.end());
  const std::size_t K = in.K, N = in.N;
  Found<T> found{0, {}, std::vector<double>(K + N), std::vector<T>(K * N), std::vector<T>(N), std::vector<T>(K)};
  std::vector<std::int32_t> path_i(K + N), path_j(K + N);
  std::vector<std::uint8_t> paid(K + N);
  std::optional<Workspace> held;
  Problem<T> problem{&m.get(), in.K, in.N, reducer, gamma, want, std::size_t(1) << 30};
  problem.match = match.data();
  problem.row = N;
  problem.column = 1;
  problem.drop_x = drop_x.data();
  problem.drop_z = drop_z.data();
  std::copy(in.charges.begin(), in.charges.end(), problem.charges);
  problem.tick = go_on;
  problem.owner = &held;
  problem.scratch = [](void* owner, std::size_t bytes) -> void* {
    return static_cast<std::optional<Workspace>*>(owner)->emplace(bytes).get();
  };
  problem.path_i = path_i.data();
  problem.path_j = path_j.data();
  problem.path_cost = paid.data();
  problem.path_weight = found.weights.data();
  problem.grad_match = found.match.data();
  problem.grad_row = N;
  problem.grad_x = found.drop_x.data();
  problem.grad_z = found.drop_z.data();
  check(kernel.solve(problem) == Status::done, m.name + ": not done");
  found.value = problem.value;
  for (int k = 0; k < problem.path_length; ++k) found.path.push_back({path_i[k], path_j[k], paid[k]});
  return found;
}

// What a path pays; also checks that its steps lead from the last cell to the first.
template <class T>
double rescored(const Found<T>& found, const Input& in, const std::string& what) {
  double total = 0;
  int i = in.K - 1, j = in.N - 1;
  for (std::size_t k = 0; k < found.path.size(); ++k) {
    const auto [a, b, paid] = found.path[k];
    check(k == 0 ? a == i && b == j : a >= i - 1 && a <= i && b >= j - 1 && b <= j && (a != i || b != j),
          what + ": the path jumps");
    i = a;
    j = b;
    if ((i < 0 && j < 0) || (Cost(paid & 3) == Cost::match && (i < 0 || j < 0))) {
      check(false, what + ": the path leaves the grid");
      return infinite;
    }
    if (Cost(paid & 3) == Cost::match) total += found.weights[k] * in.match[i * in.N + j];
    if (Cost(paid & 3) == Cost::drop_x) total += in.drop_x[j];
    if (Cost(paid & 3) == Cost::drop_z) total += in.drop_z[i];
    if (paid >> 2) total += in.charges[(paid >> 2) - 1];
  }
  check(i <= 0 && j <= 0, what + ": the path ends early");
  return total;
}

// The derivative of the naive value with respect to one number.
double slope(const Member& m, const Input& in, std::vector<double> Input::* part, std::size_t k, Reducer reducer) {
  Input more = in, less = in;
  (more.*part)[k] += 1e-5;
  (less.*part)[k] -= 1e-5;
  return (naive(m, more, reducer, 0.3) - naive(m, less, reducer, 0.3)) / 2e-5;
}

template <class T>
void check_one(const Kernels<T>& kernels, Member& m, const Input& in, const std::string& level) {
  const std::string what = level + ", " + (sizeof(T) == 4 ? "float, " : "double, ") + m.name + " of " +
                           std::to_string(in.K) + " x " + std::to_string(in.N);
  const double fine = sizeof(T) == 4 ? 1e-5 : 1e-12, rough = sizeof(T) == 4 ? 1e-4 : 1e-6;
  const double truth = naive(m, in, Reducer::hard, 1);
  std::vector<const Kernel<T>*> tiers{&kernels.any};
  if (kernels.family != nullptr) tiers.push_back(&kernels.family[m.number]);
  std::vector<Found<T>> found;
  for (const auto* kernel : tiers) {
    const double value = solved(*kernel, m, in, Reducer::hard, 1, Want::value).value;
    check(near(value, truth, fine), what + ": value " + std::to_string(value) + ", not " + std::to_string(truth));
    found.push_back(solved(*kernel, m, in, Reducer::hard, 1, Want::trace));
    check(found.back().value == value, what + ": with a path, the value is another");
    if (truth < infinite) check(near(rescored(found.back(), in, what), truth, fine), what + ": the path costs more");
  }
  if (found.size() == 2)
    check(found[0].value == found[1].value && found[0].path == found[1].path, what + ": the tiers differ");
  for (const Reducer reducer : {Reducer::soft, Reducer::smooth}) {
    const double soft = naive(m, in, reducer, 0.3);
    check(near(solved(kernels.any, m, in, reducer, 0.3, Want::value).value, soft, rough), what + ": soft value");
    const Found<T> by = solved(kernels.any, m, in, reducer, 0.3, Want::gradient);
    check(near(by.value, soft, rough), what + ": soft value with derivatives");
    if (in.K * in.N > 50 || soft == infinite) continue;
    for (std::size_t k = 0; k < by.match.size(); ++k)
      check(near(by.match[k], slope(m, in, &Input::match, k, reducer), rough), what + ": derivative, match");
    for (std::size_t k = 0; k < by.drop_x.size(); ++k)
      check(near(by.drop_x[k], slope(m, in, &Input::drop_x, k, reducer), rough), what + ": derivative, drop_x");
    for (std::size_t k = 0; k < by.drop_z.size(); ++k)
      check(near(by.drop_z[k], slope(m, in, &Input::drop_z, k, reducer), rough), what + ": derivative, drop_z");
  }
}

// One Z against as many X as a vector has lanes, each shorter by one than the next.
template <class T>
void check_lanes(const Kernels<T>& kernels, Member& m, const Input& in, const std::string& level) {
  const int W = kernels.width;
  const std::size_t K = in.K, N = in.N;
  std::vector<std::int32_t> lengths(W);
  std::vector<T> z(in.z.begin(), in.z.end()), x(N * W), drop_x(N * W), drop_z(K * W);
  std::vector<T> rows(m.ends.size() * (N + 1) * W);
  std::vector<double> values(W);
  for (int w = 0; w < W; ++w) {
    lengths[w] = in.N - (W - 1 - w);
    for (std::size_t j = 0; j < N; ++j) {
      x[j * W + w] = T(in.x[j]);
      drop_x[j * W + w] = T(in.drop_x[j]);
    }
    for (std::size_t i = 0; i < K; ++i) drop_z[i * W + w] = T(in.drop_z[i]);
  }
  LaneProblem<T> problem{};
  problem.table = &m.get();
  problem.K = in.K;
  problem.N = in.N;
  problem.feed.metric = Metric::sqeuclidean;
  problem.feed.d = 1;
  problem.feed.z = z.data();
  problem.feed.x = x.data();
  problem.lengths = lengths.data();
  problem.drop_x = drop_x.data();
  problem.drop_z = drop_z.data();
  std::copy(in.charges.begin(), in.charges.end(), problem.charges);
  problem.rows = rows.data();
  problem.values = values.data();
  problem.limit = std::numeric_limits<T>::infinity();
  problem.tick = go_on;
  std::vector<const Kernel<T>*> tiers{&kernels.any};
  if (kernels.family != nullptr) tiers.push_back(&kernels.family[m.number]);
  for (const auto* kernel : tiers) {
    check(kernel->solve_lanes(problem) == in.K, level + ", " + m.name + ": lanes stopped");
    for (int w = 0; w < W; ++w) {
      Input one = in;
      one.N = lengths[w];
      one.match.clear();
      for (int i = 0; i < one.K; ++i)
        for (int j = 0; j < one.N; ++j) one.match.push_back(in.match[i * in.N + j]);
      check(near(values[w], naive(m, one, Reducer::hard, 1), sizeof(T) == 4 ? 1e-5 : 1e-12),
            level + ", " + m.name + ": lane " + std::to_string(w));
    }
  }
}

// The same problems on several threads give the same bits as on one.
template <class T>
void check_threads(const Kernels<T>& kernels, const std::string& level) {
  const auto all = [&] {
    std::vector<double> values;
    for (Member& m : members()) {
      const Input in(60, 90, 7);
      values.push_back(solved(kernels.any, m, in, Reducer::soft, 0.3, Want::gradient).value);
      values.push_back(solved(kernels.of(m.get()), m, in, Reducer::hard, 1, Want::trace).value);
    }
    return values;
  };
  const auto alone = all();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { check(all() == alone, level + ": a thread differs"); });
  for (auto& thread : threads) thread.join();
}

template <class T>
void check_level(const Kernels<T>& kernels, const std::string& level) {
  unsigned seed = 0;
  for (Member& m : members()) {
    for (const auto& [K, N] : {std::array{1, 1}, {1, 7}, {6, 1}, {4, 5}, {5, 9}, {17, 17}, {40, 70}, {130, 90}})
      check_one(kernels, m, Input(K, N, ++seed), level);
    check_lanes(kernels, m, Input(9, 33, ++seed), level);
  }
  check_threads(kernels, level);
}

}  // namespace

int main() {
#define LEVEL(isa, runs)                                                                                        \
  if (runs) {                                                                                                   \
    Kernels<float> single;                                                                                      \
    Kernels<double> twice;                                                                                      \
    isa::get(single);                                                                                           \
    isa::get(twice);                                                                                            \
    check_level(single, #isa);                                                                                  \
    check_level(twice, #isa);                                                                                   \
    std::printf("%s, %d bytes%s; ", #isa, single.width * 4, single.family ? "" : ", without unrolled kernels"); \
  }
  LEVEL(baseline, true)
  DROPDTW_V3(LEVEL(v3, runs_v3()))
  DROPDTW_V4(LEVEL(v4, runs_v4()))
#if defined(__x86_64__)
  check(Processor().v3 == runs_v3() && Processor().v4 == runs_v4(), "level.hpp names another level than the compiler");
#endif
  std::printf("%lld checks, %lld failures\n", checks.load(), failures.load());
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
