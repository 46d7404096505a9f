// A problem as kernels take it. Plain data: it is passed between code compiled for different instruction sets.
#pragma once
#include <cstddef>
#include <cstdint>

#include "edge.hpp"

namespace dropdtw {

enum class Reducer { hard, soft, smooth };
enum class Want { value, trace, gradient };
// The last two compare codes of symbols: equal (0) or not (1), and the entry of a table of costs.
enum class Metric { none, sqeuclidean, euclidean, cosine, equal, lookup };
enum class Status { done, stopped, no_memory, abandoned };

// Whether paths are so long that their sums need bases (base.hpp).
template <class T>
constexpr bool long_sums(int K, int N) {
  return sizeof(T) == 4 && std::int64_t(K) + N >= 1 << 14;
}

template <class T>
struct Problem {
  const Table* table;
  int K, N;
  Reducer reducer;
  double gamma;
  Want want;
  std::size_t budget;  // bytes for stored choices; beyond that, they are recomputed

  // Match costs: a matrix with strides in elements, strips of one on demand, or sequences with d ≤ 8 features.
  const T* match = nullptr;
  std::ptrdiff_t row = 0, column = 0;
  T sign = 1;  // −1 if the matrix holds scores, whose sum is maximized
  const T* (*strip)(void* self, int from, int to, int rows, std::ptrdiff_t* row, std::ptrdiff_t* column) = nullptr;
  int strip_width = 0;
  Metric metric = Metric::none;
  const T *z = nullptr, *x = nullptr;
  int d = 0;
  const T* table_of_costs = nullptr;  // for lookup: (codes of z, codes of x)
  int codes_x = 0;

  const T *drop_x = nullptr, *drop_z = nullptr;
  double charges[charge_count] = {};
  // For the hard value only: a problem that costs more than `limit` may be abandoned. `least` is a lower bound on match
  // costs that are not known in advance (−∞: unknown).
  double limit = __builtin_inf(), least = -__builtin_inf();
  const std::int64_t *band_start = nullptr, *band_stop = nullptr;

  // Called periodically with `self`; false stops the work.
  bool (*tick)(void* self) = nullptr;
  void* self = nullptr;

  // Returns memory that is valid until the next call, or null if there is none. Its owner keeps it for the next
  // problem.
  void* (*scratch)(void* owner, std::size_t bytes) = nullptr;
  void* owner = nullptr;

  // Results. A path has at most K + N steps, listed from end to start. Step k pays path_cost[k] (a Cost plus four times
  // a Plus) in cell (path_i[k], path_j[k]). path_weight may be null.
  double value = 0;
  double spared = 0;  // the fraction of cells skipped because of the limit; the value is then ∞
  std::int32_t *path_i = nullptr, *path_j = nullptr;
  std::uint8_t* path_cost = nullptr;
  double* path_weight = nullptr;
  int path_length = 0;
  T *grad_match = nullptr, *grad_x = nullptr, *grad_z = nullptr;  // zeroed by the caller
  std::ptrdiff_t grad_row = 0;                                    // the row stride of grad_match
  double grad_charges[charge_count] = {};

  Cost pays(int step) const { return Cost(path_cost[step] & 3); }
};

inline constexpr int lane_tile = 64;  // columns that share a base in lanes.hpp
inline constexpr int lane_rows = 4;   // the maximum number of rows that lanes process at once

// Match costs of Z with vectors of W elements, for kernels that read them in blocks (feed.hpp). The W elements of a
// vector belong to W sequences, or are consecutive elements of one.
template <class T>
struct Feed {
  Metric metric;
  int d;
  const T* z;  // (K, d)
  const T* x;  // (columns, d, W)
  // For cosine, z or x are unit vectors, and these factors normalize the other: (K,) or (columns, W).
  const T *scale_z, *scale_x;
  // If `binary`, match costs are replaced: `low` up to the threshold of the lane, `high` above it.
  bool binary;
  T low, high;
  const T* thresholds;  // (W,)
  // Row i of a lane may match the columns from start[i · W + lane] up to, but not including, stop[i · W + lane]; null:
  // all columns. [from[i], to[i]) covers the columns of all lanes, and [inner_from[i], inner_to[i]) are those that all
  // lanes share. All these limits are non-decreasing from row to row.
  const T *start, *stop;
  const std::int32_t *from, *to, *inner_from, *inner_to;
};

// How far apart rows and columns of match costs are, in vectors.
struct Pitch {
  std::ptrdiff_t row, column = 1;
};

// One Z against up to W sequences X, values only.
template <class T>
struct LaneProblem {
  const Table* table;
  int K, N;                      // N: the length of the longest X
  Feed<T> feed;                  // limits columns only for tables whose every edge pays a match cost
  const std::int32_t* lengths;   // (W,): the lengths of the X, 0 for empty lanes
  const T *drop_x, *drop_z;      // (N, W), (K, W)
  double charges[charge_count];  // the same for every lane
  T* rows;                       // scratch: states · (N + 1) · W
  double* bases;                 // scratch for long sums: W per lane_tile columns; null if sums are short
  double* values;                // (W,): ∞ in all lanes if every one is certain to exceed the limit
  T limit;                       // if finite, match and drop costs must not be negative
  bool (*tick)(void* self);  // called periodically with `self`; false stops the work and leaves the values undefined
  void* self;
};

template <class T>
struct Kernel {
  Status (*solve)(Problem<T>&);
  int (*solve_lanes)(const LaneProblem<T>&);  // returns how many rows it computed; −1 if there is no memory
};

template <class T>
struct Kernels {
  const Kernel<T>* family;  // family_count of them; null where no level has unrolled kernels for this processor
  Kernel<T> any;            // for any table; its lanes have no bands and no bases
  int width;                // elements in a vector

  bool unrolled(const Table& table) const { return family != nullptr && table.family >= 0; }
  const Kernel<T>& of(const Table& table) const { return unrolled(table) ? family[table.family] : any; }
  // Computes rows [row, row + rows) and columns [from, to) of the match costs; `out` is where the first one goes.
  void (*costs)(const Feed<T>&, int row, int rows, int from, int to, Pitch pitch, T* out);
  // Finds the numbers of this rank and of the next (of the last: itself) among `rows` rows of n, `pitch` apart. They
  // are finite. `work` has room for 2 (rows · n + W).
  void (*select)(const T* from, int rows, int n, std::ptrdiff_t pitch, std::int64_t rank, T* work, T* found);
};

}  // namespace dropdtw
