// Defines what the Python module has for match costs.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_costs(nanobind::module_& module);

}  // namespace dropdtw
