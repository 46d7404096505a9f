// Adds the functions for match costs to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_costs(nanobind::module_& module);

}  // namespace dropdtw
