// Implements feed.hpp, one tile of rows and columns at a time, so that each loaded value is used several times.
#include "feed.hpp"

#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T>
class Feeder {
  static constexpr int W = Register<T>::W;
  static constexpr int columns_at_once = DROPDTW_BYTES == 64 ? 4 : 2;  // with 4 rows, their sums fit in registers

 public:
  static void costs(const Feed<T>& feed, int row, int rows, int from, int to, Pitch pitch, T* out) {
    if (feed.d == 1 && feed.metric == Metric::euclidean)
      numbers<Metric::euclidean>(feed, row, rows, from, to, pitch, out);
    else if (feed.d == 1 && feed.metric == Metric::sqeuclidean)
      numbers<Metric::sqeuclidean>(feed, row, rows, from, to, pitch, out);
    else if (feed.metric == Metric::euclidean)
      strip<Metric::euclidean>(feed, row, rows, from, to, pitch, out);
    else if (feed.metric == Metric::cosine)
      strip<Metric::cosine>(feed, row, rows, from, to, pitch, out);
    else
      strip<Metric::sqeuclidean>(feed, row, rows, from, to, pitch, out);
    for (int r = 0; r < rows; ++r) {
      T* const line = out + r * pitch.row * W;
      if (feed.binary) count(feed, to - from, pitch.column, line);
      if (feed.start != nullptr) forbid(feed, row + r, from, to, pitch.column, line);
    }
  }

 private:
  template <int n, class F>
  static DROPDTW_INLINE void each(F&& f) {
    each_of(std::make_integer_sequence<int, n>{}, f);
  }
  template <class F, int... k>
  static DROPDTW_INLINE void each_of(std::integer_sequence<int, k...>, F& f) {
    (f(std::integral_constant<int, k>{}), ...);
  }

  template <Metric metric>
  DROPDTW_FLAT static void strip(const Feed<T>& feed, int row, int rows, int from, int to, Pitch pitch, T* out) {
    const Feed<T> copy = feed;  // local: the compiler must assume that any store changes a referenced object
    int r = 0;
    for (; r + 4 <= rows; r += 4) line<metric, 4>(copy, row + r, from, to, pitch, out + r * pitch.row * W);
    for (; r + 2 <= rows; r += 2) line<metric, 2>(copy, row + r, from, to, pitch, out + r * pitch.row * W);
    for (; r < rows; ++r) line<metric, 1>(copy, row + r, from, to, pitch, out + r * pitch.row * W);
  }

  template <Metric metric, int rows>
  static DROPDTW_INLINE void line(const Feed<T>& feed, int row, int from, int to, Pitch pitch, T* out) {
    int j = from;
    for (; j + columns_at_once <= to; j += columns_at_once, out += columns_at_once * pitch.column * W)
      tile<metric, rows, columns_at_once>(feed, row, j, pitch, out);
    for (; j < to; ++j, out += pitch.column * W) tile<metric, rows, 1>(feed, row, j, pitch, out);
  }

  template <Metric metric, int rows, int columns>
  static DROPDTW_INLINE void tile(const Feed<T>& feed, int row, int column, Pitch pitch, T* out) {
    const int d = feed.d;
    const T* const z = feed.z + std::size_t(row) * d;
    const T* const x = feed.x + std::size_t(column) * d * W;
    Vec<T> sum[rows][columns];
    each<rows>([&](auto r) { each<columns>([&](auto c) { sum[r][c] = Vec<T>{}; }); });
    for (int f = 0; f < d; ++f) {
      Vec<T> v[columns];
      each<columns>([&](auto c) { v[c] = load(x + (std::size_t(c) * d + f) * W); });
      each<rows>([&](auto r) {
        const Vec<T> u = all<T>(z[std::size_t(r) * d + f]);
        each<columns>([&](auto c) {
          if constexpr (metric == Metric::cosine) {
            sum[r][c] += u * v[c];
          } else {
            const Vec<T> gap = u - v[c];
            sum[r][c] += gap * gap;
          }
        });
      });
    }
    each<rows>([&](auto r) {
      each<columns>([&](auto c) {
        Vec<T> cost = sum[r][c];
        if constexpr (metric == Metric::euclidean) cost = root_of<T>(cost);
        if constexpr (metric == Metric::cosine) {
          cost *= feed.scale_z != nullptr ? all<T>(feed.scale_z[row + r])
                                          : load(feed.scale_x + std::size_t(column + c) * W);
          cost = T(1) - rounded<T>(cost);
          cost = cost > T(0) ? cost : Vec<T>{};
          cost = cost < T(2) ? cost : all<T>(2);
        }
        store(out + (r * pitch.row + c * pitch.column) * W, cost);
      });
    });
  }

  template <Metric metric>
  DROPDTW_FLAT static void numbers(const Feed<T>& feed, int row, int rows, int from, int to, Pitch pitch, T* out) {
    for (int r = 0; r < rows; r += 4, out += 4 * pitch.row * W)
      some_numbers<metric>(feed.z + row + r, feed.x, smaller(4, rows - r), from, to, pitch, out);
  }

  // Up to four rows of numbers. √(v²) is |v|, unless the square is so small that it loses digits.
  template <Metric metric>
  static DROPDTW_INLINE void some_numbers(const T* z, const T* x, int rows, int from, int to, Pitch pitch, T* out) {
    constexpr T small = sizeof(T) == 4 ? T(0x1p-50) : T(0x1p-500);
    const Vec<T> row[4] = {all<T>(z[0]), all<T>(z[smaller(1, rows - 1)]), all<T>(z[smaller(2, rows - 1)]),
                           all<T>(z[rows - 1])};
    const std::ptrdiff_t step = pitch.column * W, below = pitch.row * W;
    T* const line[4] = {out, out + smaller(1, rows - 1) * below, out + smaller(2, rows - 1) * below,
                        out + (rows - 1) * below};
    Vec<T> least_size = all<T>(inf<T>);
    x += std::size_t(from) * W;
    for (int j = 0; j < to - from; ++j) {
      const Vec<T> v = load(x + j * W);
      each<4>([&](auto r) {
        const Vec<T> gap = row[r] - v;
        if constexpr (metric == Metric::sqeuclidean) {
          store(line[r] + j * step, gap * gap);
        } else {
          const Vec<T> size = gap < T(0) ? -gap : gap;
          least_size = least<T>(size, least_size);
          store(line[r] + j * step, size);
        }
      });
    }
    if constexpr (metric == Metric::euclidean) {
      if (everywhere<T>(least_size >= small)) return;
      for (int r = 0; r < rows; ++r)
        for (int j = 0; j < to - from; ++j) {
          const Vec<T> gap = load(line[r] + j * step);
          store(line[r] + j * step, root_of<T>(rounded<T>(gap * gap)));
        }
    }
  }

  DROPDTW_FLAT static void count(const Feed<T>& feed, int columns, std::ptrdiff_t step, T* line) {
    const Vec<T> threshold = load(feed.thresholds), low = all<T>(feed.low), high = all<T>(feed.high);
    for (int j = 0; j < columns; ++j, line += step * W) store(line, load(line) <= threshold ? low : high);
  }

  // Sets costs to ∞ outside the columns that each lane may match.
  DROPDTW_FLAT static void forbid(const Feed<T>& feed, int row, int from, int to, std::ptrdiff_t step, T* line) {
    const Vec<T> start = load(feed.start + std::size_t(row) * W), stop = load(feed.stop + std::size_t(row) * W);
    const auto mask = [&](int a, int b) {
      for (int j = a; j < b; ++j) {
        const Vec<T> at = all<T>(T(j));
        T* const p = line + (j - from) * step * W;
        store(p, (at >= start) & (at < stop) ? load(p) : all<T>(inf<T>));
      }
    };
    const int left = smaller(larger(feed.inner_from[row], from), to);
    const int right = smaller(larger(feed.inner_to[row], left), to);
    mask(from, left);
    mask(right, to);
  }
};

template <class T>
void feed_costs(const Feed<T>& feed, int row, int rows, int from, int to, Pitch pitch, T* out) {
  Feeder<T>::costs(feed, row, rows, from, to, pitch, out);
}

template void feed_costs(const Feed<DROPDTW_REAL>&, int, int, int, int, Pitch, DROPDTW_REAL*);

}  // namespace dropdtw::DROPDTW_ISA
