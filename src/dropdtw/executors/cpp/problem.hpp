// A problem as kernels take it. Plain data: it crosses between code compiled for different instruction sets.
#pragma once
#include <cstddef>
#include <cstdint>

#include "edge.hpp"

namespace dropdtw {

enum class Reducer { hard, soft, smooth };
enum class Want { value, trace, gradient };
enum class Metric { none, sqeuclidean, euclidean, cosine };
enum class Status { done, stopped, no_memory, abandoned };

// Whether paths are so long that their sums need bases (base.hpp).
template <class T>
constexpr bool long_sums(int K, int N) {
  return sizeof(T) == 4 && std::int64_t(K) + N >= 1 << 14;
}

template <class T>
struct Problem {
  int K, N;
  unsigned mask;  // the edges of the family that the table has
  Reducer reducer;
  double gamma;
  Want want;
  std::size_t budget;  // bytes for stored choices; beyond it they are computed again

  // Match costs: a matrix with strides in elements, or strips of it on demand, or sequences of d ≤ 8 numbers.
  const T* match = nullptr;
  std::ptrdiff_t row = 0, column = 0;
  const T* (*strip)(void* self, int from, int to, std::ptrdiff_t* row, std::ptrdiff_t* column) = nullptr;
  int strip_width = 0;
  Metric metric = Metric::none;
  const T *z = nullptr, *x = nullptr;
  int d = 0;

  const T *drop_x = nullptr, *drop_z = nullptr;
  double charges[charge_count] = {};
  // For the hard value alone: what costs more than `limit` may be given up. No match cost is below `least`, where they
  // are not known in advance (−∞: nothing is known).
  double limit = __builtin_inf(), least = -__builtin_inf();
  const std::int64_t *band_start = nullptr, *band_stop = nullptr;

  // Called now and then, with `self`; false stops the work.
  bool (*tick)(void* self) = nullptr;
  void* self = nullptr;

  // Gives memory that is valid until it is asked again; null: there is none. Its owner keeps it for the next problem.
  void* (*scratch)(void* owner, std::size_t bytes) = nullptr;
  void* owner = nullptr;

  // Results. A path has K + N steps at most; step k pays path_cost[k] (a Cost, and four times a Plus) in cell
  // (path_i[k], path_j[k]), from the end to the start. Its weight is kept where there is room for it.
  double value = 0;
  double spared = 0;  // the share of cells that were left out because of the limit; the value is then ∞
  std::int32_t *path_i = nullptr, *path_j = nullptr;
  std::uint8_t* path_cost = nullptr;
  double* path_weight = nullptr;
  int path_length = 0;
  T *grad_match = nullptr, *grad_x = nullptr, *grad_z = nullptr;  // zeroed by the caller
  std::ptrdiff_t grad_row = 0;                                    // from row to row of grad_match
  double grad_charges[charge_count] = {};
};

inline constexpr int lane_tile = 64;  // columns that share a base in lanes.hpp
inline constexpr int lane_rows = 4;   // rows that lanes take at once, at most

// Match costs of Z and of vectors of W numbers each, for kernels that take them in blocks (feed.hpp). The W numbers of
// a vector belong to W sequences, or to W consecutive elements of one.
template <class T>
struct Feed {
  Metric metric;
  int d;
  const T* z;  // (K, d)
  const T* x;  // (columns, d, W)
  // For cosine, z or x are of length 1, and this makes the other ones so: (K,), or (columns, W).
  const T *scale_z, *scale_x;
  // What pairs pay instead of their match cost, where `step` says so: `low` up to the threshold of their lane, then
  // `high`.
  bool step;
  T low, high;
  const T* thresholds;  // (W,)
  // Columns that row i of each lane may match, from start[i · W + lane] on and before `stop`, as numbers; null: all.
  // Columns [from[i], to[i]) hold those of all lanes, and [inner_from[i], inner_to[i]) belong to every lane. None of
  // these falls from row to row.
  const T *start, *stop;
  const std::int32_t *from, *to, *inner_from, *inner_to;
};

// One sequence against `count` ≤ W others, value only, hard minimum.
template <class T>
struct LaneProblem {
  int K, N;  // N: the longest of the others
  unsigned mask;
  Feed<T> feed;                 // limited to some columns for tables alone in which every edge costs a match
  const std::int32_t* lengths;  // (W,): their lengths, 0 where a lane is empty
  const T *drop_x, *drop_z;     // (N, W), (K, W)
  T charges[charge_count];      // the same for every lane
  T* rows;                      // scratch: states · (N + 1) · W
  double* bases;                // scratch for long sums: W for each lane_tile columns; null: sums are short
  double* values;               // (W,): ∞ in all lanes where every one was sure to exceed the limit
  T limit;                      // match and drop costs are not negative, unless it is ∞
  bool (*tick)(void* self);     // called now and then, with `self`; false stops the work, and the values mean nothing
  void* self;
};

// What sifting numbers leaves: those that are kept, and how many are less than these.
struct Sifted {
  std::int64_t kept, below;
};

template <class T>
struct Kernel {
  Status (*solve)(Problem<T>&);
  int (*solve_lanes)(const LaneProblem<T>&);  // how many rows were computed
};

template <class T>
struct Kernels {
  const Kernel<T>* family;  // family_count of them
  const int* states;        // of each family
  const bool* all_matches;  // whether every edge of the family costs a match
  int width;                // elements in a vector
  // Rows [row, row + rows) and columns [from, to) of match costs, into (rows, pitch, W) from column `from` on.
  void (*costs)(const Feed<T>&, int row, int rows, int from, int to, std::ptrdiff_t pitch, T* out);
  // Keeps the numbers in [low, high] of `rows` rows of n, `pitch` apart; up to W more may be written behind them.
  Sifted (*sift)(const T* from, int rows, int n, std::ptrdiff_t pitch, T low, T high, T* kept);
};

}  // namespace dropdtw
