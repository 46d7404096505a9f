// The part of the Python module for speech: CTC from scores (B, T, V) to their gradient or to paths, and monotonic
// search. Each item is one task, from its scores to the result: its costs stay in the cache of one core.
#include "speech_bindings.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "dispatch.hpp"
#include "emissions.hpp"
#include "parallel.hpp"
#include "path.hpp"
#include "problem.hpp"
#include "table_bindings.hpp"
#include "widen.hpp"
#include "workspace.hpp"

namespace dropdtw {

DROPDTW_CHOOSE(EmissionKernel, emission_kernel)

namespace {

template <class T>
using OutStrided = nb::ndarray<T, nb::ndim<3>, nb::device::cpu>;

template <class T>
void clear(T* numbers, std::size_t n) {
  std::memset(numbers, 0, n * sizeof(T));
}

// Numbers over a cached block of memory, which goes back to the cache with the array.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> room(std::size_t n) {
  auto* const block = new Workspace(std::max<std::size_t>(n, 1) * sizeof(T));
  const nb::capsule owner(block, [](void* held) noexcept { delete static_cast<Workspace*>(held); });
  return {static_cast<T*>(block->get()), {n}, owner};
}

// A batch of scores (B, T, V) with their texts. Item b has the first x_lengths[b] frames and z_lengths[b] tokens.
template <class T>
class Texts {
 public:
  Texts(const Batch<T>& scores, const Rows<std::int64_t>& tokens, const Vector<std::int64_t>& z_lengths,
        const Vector<std::int64_t>& x_lengths, int blank)
      : items(scores.shape(0)),
        frames(scores.shape(1)),
        vocabulary(int(scores.shape(2))),
        width(tokens.shape(1)),
        blank(blank),
        scores_(scores),
        tokens_(tokens.data()),
        z_lengths_(z_lengths.data()),
        x_lengths_(x_lengths.data()) {
    require(tokens.shape(0) == items && z_lengths.size() == items && x_lengths.size() == items, "no text per item");
    require(vocabulary == 1 || scores.stride(2) == 1, "the scores of a frame must lie side by side");
    require(blank >= 0 && blank < vocabulary, "no such blank");
    for (std::size_t b = 0; b < items; ++b) {
      require(z_lengths_[b] >= 0 && std::size_t(z_lengths_[b]) <= width, "a text is longer than the batch");
      require(x_lengths_[b] >= 0 && std::size_t(x_lengths_[b]) <= frames, "an item is longer than the batch");
      for (int i = 0; i < K(b); ++i) require(text(b)[i] >= 0 && text(b)[i] < vocabulary, "no such token");
    }
  }

  int K(std::size_t b) const { return int(z_lengths_[b]); }
  int N(std::size_t b) const { return int(x_lengths_[b]); }
  const std::int64_t* text(std::size_t b) const { return tokens_ + b * width; }
  // The frames [t, t + count) of item b.
  Frames<T> some(std::size_t b, std::size_t t, std::size_t count) const {
    const T* const at = scores_.data() + std::ptrdiff_t(b) * scores_.stride(0) + std::ptrdiff_t(t) * scores_.stride(1);
    return {at, scores_.stride(1), int(count), vocabulary, K(b), blank, text(b)};
  }

  const std::size_t items, frames;
  const int vocabulary;
  const std::size_t width;
  const int blank;

 private:
  const Batch<T>& scores_;
  const std::int64_t *tokens_, *z_lengths_, *x_lengths_;
};

// The costs of an item: of its tokens (K, N), of blanks (N), and of following the token before at once (K).
template <class T>
struct Emitted {
  Emitted(const Texts<T>& texts, std::size_t b)
      : K(texts.K(b)), N(texts.N(b)), held((std::size_t(K) * N + N + K + 1) * sizeof(T)) {}
  T* tokens() const { return static_cast<T*>(held.get()); }
  T* blanks() const { return tokens() + std::size_t(K) * N; }
  T* gates() const { return blanks() + N; }

  const int K, N;
  const Workspace held;
};

// Solves a batch of texts. Computes, if there is room for them, the derivatives of each value with respect to the costs
// of its tokens and blanks, or the token of each frame on the best path. Returns an item with invalid scores
// (NaN or +∞), or −1.
template <class T>
std::int64_t ctc(const OwnedTable& table, int reducer, std::size_t budget, Batch<T> scores, Rows<std::int64_t> tokens,
                 Vector<std::int64_t> z_lengths, Vector<std::int64_t> x_lengths, int blank, bool logits, int threads,
                 Out<double> value, std::optional<OutMatrix<T>> total, std::optional<OutBatch<T>> by_token,
                 std::optional<OutMatrix<T>> by_blank, std::optional<OutMatrix<std::int64_t>> path) {
  const Texts<T> texts(scores, tokens, z_lengths, x_lengths, blank);
  const std::size_t B = texts.items, N = texts.frames, K = texts.width;
  const auto fits = [&](const auto& a, std::size_t n) { return !a || (a->shape(0) == B && a->shape(1) == n); };
  require(reducer >= 0 && reducer <= 2 && threads > 0 && value.size() == B, "no such reducer, or no room");
  require(fits(total, N) && fits(by_token, K) && fits(by_blank, N) && fits(path, N) && (total || !logits) &&
              bool(by_token) == bool(by_blank) && (!by_token || by_token->shape(2) == N),
          "nowhere to put the results");
  const EmissionKernel<T> kernel = emission_kernel<T>();
  std::vector<std::optional<Emitted<T>>> emitted(B);
  std::atomic<std::int64_t> wrong = -1;
  const auto emit = [&](std::int64_t b, int from, int to) {
    const Emitted<T>& to_fill = *emitted[b];
    const Emissions<T> out{to_fill.tokens() + from, to_fill.blanks() + from,
                           logits ? total->data() + b * N + from : nullptr, to_fill.N};
    if (from < to && !kernel.costs(texts.some(b, from, to - from), out)) wrong = b;
  };
  const Threads crew = Threads::of_torch(threads);
  // With fewer items than threads, the threads share the frames of each, as far as that is worth it.
  constexpr std::size_t worth = 1 << 17;  // scores
  const int part = int(worth / texts.vocabulary) / frames_at_once * frames_at_once + frames_at_once;
  const std::int64_t parts = (std::int64_t(N) + part - 1) / part;
  const bool shared = B < std::size_t(threads) && parts > 1;
  if (shared) {
    for (std::size_t b = 0; b < B; ++b) emitted[b].emplace(texts, b);
    parallel(std::int64_t(B) * parts, crew, nb::none(), 1, [&](std::int64_t k, const Alive&) {
      const std::int64_t b = k / parts, from = k % parts * part;
      emit(b, int(from), int(std::min<std::int64_t>(from + part, texts.N(b))));
      return std::int64_t(0);
    });
  }
  parallel(std::int64_t(B), crew, nb::none(), std::int64_t(B), [&](std::int64_t b, const Alive& alive) {
    if (!shared) {
      emitted[b].emplace(texts, b);
      emit(b, 0, texts.N(b));
    }
    const Emitted<T>& costs = *emitted[b];
    const std::int64_t* const text = texts.text(b);
    std::int64_t* const matched = path ? path->data() + b * N : nullptr;
    if (matched != nullptr) std::fill_n(matched, N, texts.blank);
    if (by_token)
      for (int i = 0; i < costs.K; ++i) clear(by_token->data() + (b * K + i) * N, costs.N);
    if (by_blank) std::fill_n(by_blank->data() + b * N, costs.N, T(costs.K == 0));
    double& found = value.data()[b] = costs.K == 0 ? 0 : __builtin_inf();
    if (costs.K == 0)  // all frames are blank
      for (int t = 0; t < costs.N; ++t) found += costs.blanks()[t];
    if (costs.K > 0 && costs.N > 0) {
      for (int i = 0; i < costs.K; ++i) costs.gates()[i] = i > 0 && text[i] == text[i - 1] ? T(__builtin_inf()) : T(0);
      Problem<T> problem{&*table, costs.K, costs.N, Reducer(reducer), 1, Want::value, budget};
      problem.match = costs.tokens();
      problem.row = costs.N;
      problem.column = 1;
      problem.drop_x = costs.blanks();
      problem.drop_z = costs.gates();
      problem.tick = alive.tick;
      problem.self = alive.self;
      std::vector<T> by_gate(by_token ? costs.K : 0);
      std::optional<Path> steps;
      if (matched != nullptr) steps.emplace(problem);
      if (by_token) {
        problem.want = Want::gradient;
        problem.grad_match = by_token->data() + b * K * N;
        problem.grad_row = N;
        problem.grad_x = by_blank->data() + b * N;
        problem.grad_z = by_gate.data();
      }
      const Status status = solve_exactly(problem);
      if (status == Status::no_memory) throw std::bad_alloc();
      if (status == Status::stopped) return std::int64_t(0);
      found = problem.value;
      for (int step = 0; step < problem.path_length; ++step)
        if (problem.pays(step) == Cost::match) matched[problem.path_j[step]] = text[problem.path_i[step]];
    }
    emitted[b].reset();
    return std::int64_t(1);
  });
  return wrong;
}

// Writes the gradient at the scores (B, T, V), zero in padding: `grad` (B,) times the derivatives that `ctc` found.
template <class T>
void ctc_gradient(Batch<T> scores, Rows<std::int64_t> tokens, Vector<std::int64_t> z_lengths,
                  Vector<std::int64_t> x_lengths, int blank, bool logits, int threads, Rows<T> total, Batch<T> by_token,
                  Rows<T> by_blank, Vector<T> grad, OutStrided<T> out) {
  const Texts<T> texts(scores, tokens, z_lengths, x_lengths, blank);
  const std::size_t B = texts.items, N = texts.frames, K = texts.width, V = texts.vocabulary;
  require(threads > 0 && grad.size() == B && by_token.shape(0) == B && by_token.shape(1) == K &&
              by_token.shape(2) == N && by_blank.shape(0) == B && by_blank.shape(1) == N &&
              (!logits || (total.shape(0) == B && total.shape(1) == N)),
          "the derivatives do not fit");
  require(out.shape(0) == B && out.shape(1) == N && out.shape(2) == V && (V == 1 || out.stride(2) == 1),
          "nowhere to put the gradient");
  // A task takes some frames of all items: if the items of a frame lie side by side, as in PyTorch's layout, threads
  // would otherwise wait for each other's cache lines.
  constexpr std::size_t enough = 1 << 15;  // scores per task
  const std::size_t part = (enough / V / std::max<std::size_t>(B, 1) / frames_at_once + 1) * frames_at_once;
  const EmissionKernel<T> kernel = emission_kernel<T>();
  const Threads crew = Threads::of_torch(threads);
  parallel(std::int64_t((N + part - 1) / part), crew, nb::none(), 1, [&](std::int64_t task, const Alive&) {
    const Workspace some((K + 1) * frames_at_once * sizeof(T));
    const std::size_t from = task * part, stop = std::min(N, from + part);
    for (std::size_t t = from; t < stop; t += frames_at_once)
      for (std::size_t b = 0; b < B; ++b) {
        const std::size_t end = std::min(stop, t + frames_at_once), length = texts.N(b), at = b * N + t;
        const T times = grad.data()[b];
        const std::size_t n = times == 0 || t >= length ? 0 : std::min(end, length) - t;
        const Emissions<const T> by{by_token.data() + b * K * N + t, by_blank.data() + at,
                                    logits ? total.data() + at : nullptr, std::ptrdiff_t(N)};
        T* const into = out.data() + std::ptrdiff_t(b) * out.stride(0) + std::ptrdiff_t(t) * out.stride(1);
        kernel.gradient(texts.some(b, t, n), by, times, static_cast<T*>(some.get()), into, out.stride(1));
        for (std::size_t r = n; r < end - t; ++r) clear(into + std::ptrdiff_t(r) * out.stride(1), V);
      }
    return std::int64_t(0);
  });
}

// Writes 1 where the alignment with the largest sum of scores (B, K, N) matches, and 0 elsewhere. The table has neither
// drops nor charges. Returns an item whose scores are not scores, or −1.
template <class T>
std::int64_t search(const OwnedTable& table, std::size_t budget, Batch<T> scores, Vector<std::int64_t> z_lengths,
                    Vector<std::int64_t> x_lengths, int threads, OutBatch<T> out) {
  const std::size_t B = scores.shape(0), K = scores.shape(1), N = scores.shape(2);
  require(threads > 0 && z_lengths.size() == B && x_lengths.size() == B && out.shape(0) == B && out.shape(1) == K &&
              out.shape(2) == N,
          "the parts of the batch do not fit");
  for (std::size_t b = 0; b < B; ++b)
    require(z_lengths(b) >= 0 && std::size_t(z_lengths(b)) <= K && x_lengths(b) >= 0 && std::size_t(x_lengths(b)) <= N,
            "lengths do not fit the batch");
  const EmissionKernel<T> kernel = emission_kernel<T>();
  std::atomic<std::int64_t> wrong = -1;
  const Threads crew = Threads::of_torch(threads);
  parallel(std::int64_t(B), crew, nb::none(), std::int64_t(B), [&](std::int64_t b, const Alive& alive) {
    clear(out.data() + b * K * N, K * N);
    const std::size_t k = z_lengths(b), n = x_lengths(b);
    if (k == 0 || n == 0) return std::int64_t(1);
    Problem<T> problem{&*table, int(k), int(n), Reducer::hard, 1, Want::trace, budget};
    problem.match = scores.data() + std::ptrdiff_t(b) * scores.stride(0);
    problem.row = scores.stride(1);
    problem.column = scores.stride(2);
    problem.sign = -1;
    for (std::size_t i = 0; i < k; ++i) {
      const T* const row = problem.match + std::ptrdiff_t(i) * problem.row;
      bool sane = problem.column != 1 || kernel.sane(row, int(n));
      for (std::size_t j = 0; problem.column != 1 && j < n; ++j)
        sane &= row[std::ptrdiff_t(j) * problem.column] < __builtin_inf();
      if (!sane) wrong = b;
    }
    const std::vector<T> never(std::max(k, n), T(__builtin_inf()));
    problem.drop_x = problem.drop_z = never.data();
    problem.tick = alive.tick;
    problem.self = alive.self;
    const Path steps(problem);
    const Status status = solve_exactly(problem);
    if (status == Status::no_memory) throw std::bad_alloc();
    if (status == Status::stopped) return std::int64_t(0);
    for (int step = 0; step < problem.path_length; ++step)
      out.data()[(b * K + problem.path_i[step]) * N + problem.path_j[step]] = 1;
    return std::int64_t(1);
  });
  return wrong;
}

}  // namespace

void define_speech(nb::module_& module) {
  using nb::arg;
  const auto define = [&](auto solve, auto gradient, auto find, auto memory, const char* name) {
    module.def("ctc", solve, arg("table"), arg("reducer"), arg("budget"), arg("scores").noconvert(),
               arg("tokens").noconvert(), arg("z_lengths").noconvert(), arg("x_lengths").noconvert(), arg("blank"),
               arg("logits"), arg("threads"), arg("value").noconvert(), arg("total").noconvert().none(),
               arg("by_token").noconvert().none(), arg("by_blank").noconvert().none(), arg("path").noconvert().none());
    module.def("ctc_gradient", gradient, arg("scores").noconvert(), arg("tokens").noconvert(),
               arg("z_lengths").noconvert(), arg("x_lengths").noconvert(), arg("blank"), arg("logits"), arg("threads"),
               arg("total").noconvert(), arg("by_token").noconvert(), arg("by_blank").noconvert(),
               arg("grad").noconvert(), arg("out").noconvert());
    module.def("search", find, arg("table"), arg("budget"), arg("scores").noconvert(), arg("z_lengths").noconvert(),
               arg("x_lengths").noconvert(), arg("threads"), arg("out").noconvert());
    module.def(name, memory, arg("n"));
  };
  define(&ctc<float>, &ctc_gradient<float>, &search<float>, &room<float>, "room_float32");
  define(&ctc<double>, &ctc_gradient<double>, &search<double>, &room<double>, "room_float64");
}

}  // namespace dropdtw
