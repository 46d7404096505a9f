// Soft minima in lanes, as lanes.hpp does for hard ones.
//
// exp(−value/γ) of a cell is the sum over its edges of the neighbors' exp(−value/γ) times exp(−cost/γ). Such numbers
// exceed the exponent range of a float, so each is stored as m · 2^e with a separate number e. This takes one
// exponential per match cost, and neither exponentials nor logarithms from one cell to the next. From cell to cell, m
// grows or shrinks by a factor below 16; it is renormalized to 1 ≤ m < 2 periodically. This needs instructions that
// scale by powers of two, which older processors lack.
#include "soft.hpp"

#include "cell.hpp"
#include "feed.hpp"
#include "tables.hpp"

namespace dropdtw::DROPDTW_ISA {

#if defined(__AVX512F__)

template <class T>
struct Scaled {
  Vec<T> m, e;  // m · 2^e; represents 0 if e ≤ lowest
};

template <class T>
inline constexpr T lowest = T(-0x1p100);

DROPDTW_INLINE Vec<float> times_power(Vec<float> m, Vec<float> e) {
  return (Vec<float>)_mm512_scalef_ps((__m512)m, (__m512)e);
}
DROPDTW_INLINE Vec<double> times_power(Vec<double> m, Vec<double> e) {
  return (Vec<double>)_mm512_scalef_pd((__m512d)m, (__m512d)e);
}
DROPDTW_INLINE Vec<float> whole(Vec<float> v) { return (Vec<float>)_mm512_roundscale_ps((__m512)v, 0); }
DROPDTW_INLINE Vec<double> whole(Vec<double> v) { return (Vec<double>)_mm512_roundscale_pd((__m512d)v, 0); }
DROPDTW_INLINE Vec<float> most(Vec<float> a, Vec<float> b) { return (Vec<float>)_mm512_max_ps((__m512)a, (__m512)b); }
DROPDTW_INLINE Vec<double> most(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm512_max_pd((__m512d)a, (__m512d)b);
}

DROPDTW_INLINE Scaled<float> normal(const Scaled<float>& v) {
  return {(Vec<float>)_mm512_getmant_ps((__m512)v.m, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src),
          v.e + (Vec<float>)_mm512_getexp_ps((__m512)v.m)};
}
DROPDTW_INLINE Scaled<double> normal(const Scaled<double>& v) {
  return {(Vec<double>)_mm512_getmant_pd((__m512d)v.m, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src),
          v.e + (Vec<double>)_mm512_getexp_pd((__m512d)v.m)};
}

// exp(−price/γ), where scale is −log2(e)/γ; its m is between 0.7 and 1.5. The polynomials interpolate 2^r for |r| ≤ ½
// at Chebyshev nodes, to within 3 · 10⁻¹⁶ (double) and 3 · 10⁻⁹ (single precision).
template <class T>
DROPDTW_INLINE Scaled<T> weight(Vec<T> price, T scale) {
  const Vec<T> y = most(price * scale, all<T>(lowest<T>)), e = whole(y), r = y - e;
  Vec<T> p;
  if constexpr (sizeof(T) == 4)
    p = polynomial<T>(r, 0.00015461444698569129083, 0.001340042817761583794, 0.0096180566785246380754,
                      0.055503272266703020589, 0.24022650922288758071, 0.69314720670283259577, 1.);
  else
    p = polynomial<T>(r, 7.0725859492692236999e-9, 1.0208690299958305835e-7, 1.3215442587921689653e-6,
                      0.000015252657260200837064, 0.00015403530441736050155, 0.0013333558230164973899,
                      0.0096181291076068885273, 0.055504108664447719166, 0.2402265069591009822, 0.69314718055994998286,
                      1.);
  return {p, e};
}

template <class T>
DROPDTW_INLINE Scaled<T> times(const Scaled<T>& a, const Scaled<T>& b) {
  return {a.m * b.m, a.e + b.e};
}

template <class Tab, class T>
class SoftLanes {
  static constexpr int S = Tab::states, W = Register<T>::W;
  static constexpr int R = S == 1 ? lane_rows : 1;

  struct Around {
    Scaled<T> diag[S], left[S], top[S], here[S];
    Scaled<T> match, drop_x, drop_z;
    Vec<T> cost;  // the match cost itself, for edges with a weight
  };
  struct Constants {
    unsigned mask;
    T scale;
    Scaled<T> charges[charge_count];
  };

 public:
  SoftLanes(const LaneProblem<T>& problem, double gamma)
      : problem_(problem), gamma_(gamma), scale_(T(-1.44269504088896340736 / gamma)) {
    constants_.mask = problem.table->mask;
    constants_.scale = scale_;
    for (int c = 0; c < charge_count; ++c) constants_.charges[c] = weight<T>(all<T>(T(problem.charges[c])), scale_);
  }

  int solve() {
    row_zero();
    int i = 1;
    for (; i + R - 1 <= problem_.K; i += R) {
      rows<R>(i);
      if (!alive(R)) return i + R - 1;
    }
    for (; i <= problem_.K; ++i) rows<1>(i);
    for (int lane = 0; lane < W; ++lane) problem_.values[lane] = value(lane);
    return problem_.K;
  }

 private:
  // −γ log of the sum over the final states.
  double value(int lane) {
    const T* const at = state_at(problem_.lengths[lane]);
    double highest = -__builtin_inf(), sum = 0;
    for (const int s : Tab::final)
      highest = at[(2 * s + 1) * W + lane] > highest ? at[(2 * s + 1) * W + lane] : highest;
    for (const int s : Tab::final) {
      const double e = double(at[(2 * s + 1) * W + lane]) - highest;
      sum += e > -2000 ? at[2 * s * W + lane] * __builtin_exp2(e) : 0;
    }
    if (highest < lowest<double> / 2) return __builtin_inf();
    return -gamma_ * (__builtin_log(sum) + highest * 0.693147180559945309417);
  }

  bool alive(int rows) {
    steps_ += std::int64_t(rows) * problem_.N;
    if (steps_ < (1 << 21)) return true;
    steps_ = 0;
    return problem_.tick(problem_.self);
  }

  T* state_at(int j) { return problem_.rows + std::size_t(j) * 2 * S * W; }
  static DROPDTW_INLINE Scaled<T> loaded(const T* at, int s) {
    return {load(at + 2 * s * W), load(at + (2 * s + 1) * W)};
  }
  static DROPDTW_INLINE void stored(T* at, int s, const Scaled<T>& v) {
    store(at + 2 * s * W, v.m);
    store(at + (2 * s + 1) * W, v.e);
  }
  static DROPDTW_INLINE Scaled<T> nothing() { return {all<T>(1), all<T>(lowest<T>)}; }

  DROPDTW_FLAT void row_zero() {
    Around a;
    for (int s = 0; s < S; ++s) {
      a.here[s] = Tab::start[s] ? Scaled<T>{all<T>(1), Vec<T>{}} : nothing();
      a.top[s] = a.diag[s] = nothing();
      stored(state_at(0), s, a.here[s]);
    }
    a.match = a.drop_z = nothing();
    a.cost = all<T>(inf<T>);
    for (int j = 1; j <= problem_.N; ++j) {
      for (int s = 0; s < S; ++s) a.left[s] = a.here[s];
      a.drop_x = weight<T>(load(problem_.drop_x + std::size_t(j - 1) * W), scale_);
      border_cell(a);
      for (int s = 0; s < S; ++s) stored(state_at(j), s, a.here[s]);
    }
  }

  DROPDTW_INLINE void border_cell(Around& a) {
    compute_cells(a, constants_);
    for (int s = 0; s < S; ++s) a.here[s] = normal(a.here[s]);
  }

  template <int rows_at_once>
  DROPDTW_FLAT void rows(int i) {
    Scaled<T> left[rows_at_once][S], diag[S], drop_z[rows_at_once];
    Around a;
    for (int s = 0; s < S; ++s) {
      diag[s] = a.top[s] = loaded(state_at(0), s);
      a.left[s] = a.diag[s] = nothing();
    }
    a.match = a.drop_x = nothing();
    a.cost = all<T>(inf<T>);
    for (int r = 0; r < rows_at_once; ++r) {
      a.drop_z = drop_z[r] = weight<T>(load(problem_.drop_z + std::size_t(i + r - 1) * W), scale_);
      border_cell(a);
      for (int s = 0; s < S; ++s) left[r][s] = a.top[s] = a.here[s];
    }
    for (int s = 0; s < S; ++s) stored(state_at(0), s, a.here[s]);
    const Constants constants = constants_;
    const T scale = scale_;
    for (int from = 0; from < problem_.N; from += lane_tile) {
      const int to = smaller(from + lane_tile, problem_.N);
      feed_costs<T>(problem_.feed, i - 1, rows_at_once, from, to, {lane_tile}, match_);
      T* here = state_at(from);
      const T *cost = match_, *drop_x = problem_.drop_x + std::size_t(from) * W;
      for (int j = from; j < to; ++j, cost += W, drop_x += W) {
        here += 2 * S * W;
        each_state<Tab>([&](auto s) {
          a.diag[s] = diag[s];
          diag[s] = a.top[s] = loaded(here, s);
        });
        if constexpr (pays(Cost::drop_x)) a.drop_x = weight<T>(load(drop_x), scale);
        visit_states(std::make_integer_sequence<int, rows_at_once>{}, [&](auto r) {
          each_state<Tab>([&](auto s) { a.left[s] = left[r][s]; });
          a.drop_z = drop_z[r];
          a.cost = load(cost + r * lane_tile * W);
          a.match = weight<T>(a.cost, scale);
          compute_cells(a, constants);
          each_state<Tab>([&](auto s) {
            a.diag[s] = left[r][s];
            left[r][s] = a.top[s] = a.here[s];
          });
        });
        each_state<Tab>([&](auto s) { stored(here, s, normal(a.here[s])); });
        if (j % 16 == 15)
          for (int r = 0; r < rows_at_once; ++r)
            for (int s = 0; s < S; ++s) left[r][s] = normal(left[r][s]);
      }
    }
  }

  static constexpr bool pays(Cost cost) {
    for (const Edge& e : Tab::edges)
      if (e.cost == cost) return true;
    return false;
  }

  static DROPDTW_INLINE void compute_cells(Around& a, const Constants& constants) {
    each_state<Tab>([&](auto s) { a.here[s] = sum<s>(a, constants); });
  }

  template <int s>
  static DROPDTW_INLINE Scaled<T> sum(const Around& a, const Constants& constants) {
    if constexpr (in_degree<Tab>(s) == 0) {
      return nothing();
    } else {
      Scaled<T> from[in_degree<Tab>(s)];
      Vec<T> e;
      each_edge<Tab, s>([&](auto k) {
        from[rank<Tab>(k)] = arriving<k>(a, constants);
        if constexpr (rank<Tab>(k) == 0)
          e = from[0].e;
        else
          e = most(from[rank<Tab>(k)].e, e);
      });
      if constexpr (in_degree<Tab>(s) == 1)
        return one_price<Tab>(s) ? paid<first_edge<Tab>(s)>(from[0], a, constants) : from[0];
      Vec<T> total{};
      each_edge<Tab, s>([&](auto k) {
        const Scaled<T>& v = from[rank<Tab>(k)];
        total += times_power(v.m, v.e - e);
      });
      const Scaled<T> found{total, e};
      if constexpr (one_price<Tab>(s)) return paid<first_edge<Tab>(s)>(found, a, constants);
      return found;
    }
  }

  template <int k>
  static DROPDTW_INLINE Scaled<T> paid(Scaled<T> v, const Around& a, const Constants& constants) {
    constexpr Edge edge = Tab::edges[k];
    if constexpr (edge.cost == Cost::free) return (void)constants, v;
    if constexpr (edge.weight != 1) {
      static_assert(edge.cost == Cost::match, "only match costs are weighed");
      return times(v, weight<T>(a.cost, T(edge.weight) * constants.scale));
    } else {
      return times(v, edge.cost == Cost::match ? a.match : edge.cost == Cost::drop_x ? a.drop_x : a.drop_z);
    }
  }

  // The value that arrives by edge k, without the price if all edges into its state share it.
  template <int k>
  static DROPDTW_INLINE Scaled<T> arriving(const Around& a, const Constants& constants) {
    constexpr Edge edge = Tab::edges[k];
    if constexpr (edge.optional)
      if (!(constants.mask >> k & 1)) return nothing();
    Scaled<T> v = edge.move == Move::diag   ? a.diag[edge.src]
                  : edge.move == Move::left ? a.left[edge.src]
                  : edge.move == Move::top  ? a.top[edge.src]
                                            : a.here[edge.src];
    if constexpr (edge.plus != Plus::none) v = times(v, constants.charges[int(edge.plus) - 1]);
    if constexpr (one_price<Tab>(edge.dst)) return v;
    return paid<k>(v, a, constants);
  }

  const LaneProblem<T>& problem_;
  const double gamma_;
  const T scale_;
  Constants constants_;
  std::int64_t steps_ = 0;
  alignas(64) T match_[R * lane_tile * W];
};

template <class Tab, class T>
int solve_soft(const LaneProblem<T>& problem, double gamma) {
  return SoftLanes<Tab, T>(problem, gamma).solve();
}

const SoftKernels<DROPDTW_REAL>::Solve soft[] = {
#define DROPDTW_SOFT(number, name) &solve_soft<dropdtw::name, DROPDTW_REAL>,
    DROPDTW_FAMILIES(DROPDTW_SOFT)
#undef DROPDTW_SOFT
};

void get(SoftKernels<DROPDTW_REAL>& found) { found = {soft}; }

#else

void get(SoftKernels<DROPDTW_REAL>& found) { found = {nullptr}; }

#endif

}  // namespace dropdtw::DROPDTW_ISA
