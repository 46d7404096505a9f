// The array types of the Python module, and the check that rejects arguments that do not fit.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <stdexcept>

#include "edge.hpp"

namespace dropdtw {

namespace nb = nanobind;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // with any strides
template <class T>
using Batch = nb::ndarray<const T, nb::ndim<3>, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutBatch = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Charges = std::array<double, charge_count>;

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace dropdtw
