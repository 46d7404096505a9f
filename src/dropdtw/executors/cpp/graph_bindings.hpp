// Defines what the Python module has for graphs.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_graphs(nanobind::module_& module);

}  // namespace dropdtw
