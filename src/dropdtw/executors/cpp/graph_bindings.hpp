// Adds the functions for graphs to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_graphs(nanobind::module_& module);

}  // namespace dropdtw
