// One cell: computes the states of (i, j) from those of its neighbors, for W cells at once. The edges are constexpr, so
// each state unrolls into the few instructions of its own edges. Traversals (wave.hpp, lanes.hpp) decide which cells
// share a vector; this file does not depend on them.
#pragma once
#include <utility>

#include "edge.hpp"
#include "problem.hpp"
#include "vec.hpp"

namespace dropdtw::DROPDTW_ISA {

// The neighbors' states and the prices of W cells.
template <class Tab, class T>
struct Around {
  Vec<T> diag[Tab::states], left[Tab::states], top[Tab::states], here[Tab::states];
  Vec<T> match, drop_x, drop_z;
  // Only if states have bases (base.hpp): base of the row above minus base of this row; drop_z already includes it.
  Vec<T> descent;
};

// The mask of the edges that the table has among those of its family (emit.py), and what the charges are.
template <class T>
struct Terms {
  unsigned mask;
  T charges[charge_count];

  Terms(const Table& table, const double* amounts) : mask(table.mask) {
    for (int c = 0; c < charge_count; ++c) charges[c] = T(amounts[c]);
  }
};

template <class Tab>
inline constexpr int edge_count = sizeof(Tab::edges) / sizeof(Edge);
template <class Tab>
constexpr int in_degree(int s) {
  int n = 0;
  for (const Edge& e : Tab::edges) n += e.dst == s;
  return n;
}

template <class Tab>
constexpr int most_edges() {
  int most = 0;
  for (int s = 0; s < Tab::states; ++s) most = larger(most, in_degree<Tab>(s));
  return most;
}

template <class Tab>
constexpr int first_edge(int s) {
  for (int e = 0; e < edge_count<Tab>; ++e)
    if (Tab::edges[e].dst == s) return e;
  return -1;
}

template <class Tab>
constexpr int rank(int e) {  // the index of edge e among the edges into its state
  int k = 0;
  for (int f = 0; f < e; ++f) k += Tab::edges[f].dst == Tab::edges[e].dst;
  return k;
}

// Whether all edges into s have the same price, charges aside. The price is then added once, after the minimum.
template <class Tab>
constexpr bool one_price(int s) {
  const Edge& first = Tab::edges[first_edge<Tab>(s)];
  for (const Edge& e : Tab::edges)
    if (e.dst == s && (e.cost != first.cost || e.weight != first.weight)) return false;
  return true;
}

// Whether edge e pays the descent on top of its price.
template <class Tab>
constexpr bool descends(int e) {
  return (Tab::edges[e].move == Move::diag || Tab::edges[e].move == Move::top) && Tab::edges[e].cost != Cost::drop_z;
}

// Whether edge e can share one addition of the descent when choices are recorded. If all edges into a state have the
// same price, those that pay the descent can take their minimum first and then add it once. But the addition can round
// different values to a tie, which the first edge must win. So e may join only if all earlier edges into its state do.
template <class Tab>
constexpr bool joins(int e) {
  if (!one_price<Tab>(Tab::edges[e].dst)) return false;
  for (int f = 0; f <= e; ++f)
    if (Tab::edges[f].dst == Tab::edges[e].dst && !descends<Tab>(f)) return false;
  return true;
}

// Whether two edges add the same charge and descent to their price.
template <class Tab, bool based>
constexpr bool alike(int e, int f) {
  return Tab::edges[e].plus == Tab::edges[f].plus && (!based || descends<Tab>(e) == descends<Tab>(f));
}

// The first edge into e's state that adds the same charge and descent; edges that all tables of the family have take
// precedence.
template <class Tab, bool based>
constexpr int leader(int e) {
  for (bool optional : {false, true})
    for (int f = 0; f < edge_count<Tab>; ++f)
      if (Tab::edges[f].dst == Tab::edges[e].dst && alike<Tab, based>(e, f) && Tab::edges[f].optional == optional)
        return f;
  return e;
}

// The choices of all states of a cell are packed into one code; the bits of state s begin at code_shift(s).
constexpr int bits_for(int n) {
  int b = 0;
  while ((1 << b) < n) ++b;
  return b;
}

template <class Tab>
constexpr int code_shift(int s) {
  int b = 0;
  for (int r = 0; r < s; ++r) b += bits_for(in_degree<Tab>(r));
  return b;
}

template <class Tab>
inline constexpr bool wide_code = code_shift<Tab>(Tab::states) > 8;

template <class Tab, int s, int e, class F>
DROPDTW_INLINE void call_into(F& f) {
  if constexpr (Tab::edges[e].dst == s) f(std::integral_constant<int, e>{});
}

template <class Tab, int s, class F, int... e>
DROPDTW_INLINE void visit_edges(std::integer_sequence<int, e...>, F& f) {
  (call_into<Tab, s, e>(f), ...);
}

// Calls f with the index of each edge into s, as a compile-time constant.
template <class Tab, int s, class F>
DROPDTW_INLINE void each_edge(F&& f) {
  visit_edges<Tab, s>(std::make_integer_sequence<int, edge_count<Tab>>{}, f);
}

template <class F, int... s>
DROPDTW_INLINE void visit_states(std::integer_sequence<int, s...>, F&& f) {
  (f(std::integral_constant<int, s>{}), ...);
}

template <class Tab, class F>
DROPDTW_INLINE void each_state(F&& f) {
  visit_states(std::make_integer_sequence<int, Tab::states>{}, f);
}

template <class Tab, int e, class T>
DROPDTW_INLINE bool present(const Terms<T>& terms) {
  if constexpr (Tab::edges[e].optional) return terms.mask >> e & 1;
  return true;
}

template <class Tab, int e, class T>
DROPDTW_INLINE Vec<T> source(const Around<Tab, T>& a) {
  constexpr Edge edge = Tab::edges[e];
  if constexpr (edge.move == Move::diag) return a.diag[edge.src];
  if constexpr (edge.move == Move::left) return a.left[edge.src];
  if constexpr (edge.move == Move::top) return a.top[edge.src];
  return a.here[edge.src];
}

// v plus the price of edge e, without its charge.
template <class Tab, int e, class T>
DROPDTW_INLINE Vec<T> plus_price(Vec<T> v, const Around<Tab, T>& a) {
  constexpr Edge edge = Tab::edges[e];
  if constexpr (edge.cost == Cost::free) return v;
  const Vec<T>& price = edge.cost == Cost::match ? a.match : edge.cost == Cost::drop_x ? a.drop_x : a.drop_z;
  if constexpr (edge.weight == 1) return v + price;
  return v + T(edge.weight) * price;
}

template <class Tab, int e, class T>
DROPDTW_INLINE Vec<T> plus_charge(Vec<T> v, const Terms<T>& terms) {
  if constexpr (Tab::edges[e].plus == Plus::none) return v;
  return v + terms.charges[int(Tab::edges[e].plus) - 1];
}

// The value that arrives by edge e, without the price if all edges into its state share it (`settle` adds it).
template <class Tab, int e, class T, bool based = false>
DROPDTW_INLINE Vec<T> arriving(const Around<Tab, T>& a, const Terms<T>& terms) {
  Vec<T> v = plus_charge<Tab, e, T>(source<Tab, e, T>(a), terms);
  if constexpr (based && descends<Tab>(e)) v += a.descent;
  if constexpr (one_price<Tab>(Tab::edges[e].dst)) return v;
  return plus_price<Tab, e, T>(v, a);
}

template <class Tab, int s, class T>
DROPDTW_INLINE Vec<T> settle(Vec<T> v, const Around<Tab, T>& a) {
  if constexpr (one_price<Tab>(s)) return plus_price<Tab, first_edge<Tab>(s), T>(v, a);
  return v;
}

template <int rank, class T>
DROPDTW_INLINE void take_if_less(Vec<T> v, Vec<T>& best, Mask<T>& chosen) {
  const Mask<T> better = v < best;
  chosen = better ? (Mask<T>{} + rank) : chosen;
  best = better ? v : best;
}

// The minimum over the edges into s, and the rank of the first edge that attains it.
template <class Tab, int s, class T, bool based>
DROPDTW_INLINE Vec<T> first_least(const Around<Tab, T>& a, const Terms<T>& terms, Mask<T>& chosen) {
  constexpr int first = first_edge<Tab>(s);
  constexpr bool together = based && joins<Tab>(first);
  Vec<T> best = present<Tab, first>(terms) ? arriving < Tab, first, T, based && !together > (a, terms) : all<T>(inf<T>);
  if constexpr (together) {
    each_edge<Tab, s>([&](auto e) DROPDTW_INLINE_LAMBDA {
      if constexpr (e != first && joins<Tab>(e))
        if (present<Tab, e>(terms)) take_if_less<rank<Tab>(e), T>(arriving<Tab, e, T>(a, terms), best, chosen);
    });
    best += a.descent;
  }
  each_edge<Tab, s>([&](auto e) DROPDTW_INLINE_LAMBDA {
    if constexpr (e != first && !(together && joins<Tab>(e)))
      if (present<Tab, e>(terms)) take_if_less<rank<Tab>(e), T>(arriving<Tab, e, T, based>(a, terms), best, chosen);
  });
  return settle<Tab, s, T>(best, a);
}

// The same without the rank. Edges that add the same charge and descent take their minimum first and add them once.
template <class Tab, int s, class T, bool based>
DROPDTW_INLINE Vec<T> just_least(const Around<Tab, T>& a, const Terms<T>& terms) {
  constexpr bool grouped = one_price<Tab>(s);
  constexpr int first = first_edge<Tab>(s);
  Vec<T> best;
  each_edge<Tab, s>([&](auto e) DROPDTW_INLINE_LAMBDA {
    if constexpr (!grouped) {
      if constexpr (e == first)
        best = present<Tab, e>(terms) ? arriving<Tab, e, T, based>(a, terms) : all<T>(inf<T>);
      else if (present<Tab, e>(terms))
        best = least<T>(arriving<Tab, e, T, based>(a, terms), best);
    } else if constexpr (leader<Tab, based>(e) == e) {
      Vec<T> v = source<Tab, e, T>(a);
      if (!present<Tab, e>(terms)) v = all<T>(inf<T>);
      each_edge<Tab, s>([&](auto f) DROPDTW_INLINE_LAMBDA {
        if constexpr (f != e && alike<Tab, based>(e, f))
          if (present<Tab, f>(terms)) v = least<T>(source<Tab, f, T>(a), v);
      });
      v = plus_charge<Tab, e, T>(v, terms);
      if constexpr (based && descends<Tab>(e)) v += a.descent;
      best = e == first ? v : least<T>(v, best);
    }
  });
  return settle<Tab, s, T>(best, a);
}

// Computes all states of W cells in order. With `codes`, returns the ranks of the best edges, packed.
template <class Tab, class T, bool codes, bool based = false>
DROPDTW_INLINE Mask<T> compute_cells(Around<Tab, T>& a, const Terms<T>& terms) {
  Mask<T> packed{};
  each_state<Tab>([&](auto s) DROPDTW_INLINE_LAMBDA {
    if constexpr (in_degree<Tab>(s) == 0) {
      a.here[s] = all<T>(inf<T>);  // no edge leads here; only the origin can be in this state
    } else if constexpr (codes) {
      Mask<T> chosen{};
      a.here[s] = first_least<Tab, s, T, based>(a, terms, chosen);
      if constexpr (in_degree<Tab>(s) > 1) packed |= chosen << code_shift<Tab>(s);
    } else {
      a.here[s] = just_least<Tab, s, T, based>(a, terms);
    }
  });
  return packed;
}

}  // namespace dropdtw::DROPDTW_ISA
