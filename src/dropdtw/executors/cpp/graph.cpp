// The kernel for graphs, for one instruction set and one precision; the build compiles this file once for each.
#include "graph_backward.hpp"

namespace dropdtw::DROPDTW_ISA {

template <class T, Reducer R>
class Value {
 public:
  explicit Value(GraphProblem<T>& problem) : forward(problem), p(problem) {
    const Plan& plan = *problem.plan;
    ends = forward.rest.template piece<T>(std::size_t(plan.final_count) * plan.finals_count * Register<T>::W);
    forward.bytes = forward.rest.used();
  }
  std::size_t bytes() const { return forward.bytes; }
  Status solve() {
    forward.begin();
    const T* const last = forward.fill_last();
    if (last == nullptr) return Status::stopped;
    set_ends(forward, last, ends);
    p.value = value_of(forward, ends);
    return Status::done;
  }

 private:
  GraphForward<T, R> forward;
  GraphProblem<T>& p;
  T* ends;
};

template <class T, class Do>
auto dispatch(GraphProblem<T>& problem, const Do& run) {
  if (problem.want == Want::trace) return run(GraphPath<T>(problem));
  if (problem.reducer == Reducer::hard) return run(Value<T, Reducer::hard>(problem));
  const bool value = problem.want == Want::value;
  if (problem.reducer == Reducer::soft)
    return value ? run(Value<T, Reducer::soft>(problem)) : run(GraphBackward<T, Reducer::soft>(problem));
  return value ? run(Value<T, Reducer::smooth>(problem)) : run(GraphBackward<T, Reducer::smooth>(problem));
}

template <class T>
std::size_t bytes(const GraphProblem<T>& problem) {
  GraphProblem<T> empty = problem;
  empty.work = nullptr;
  return dispatch(empty, [](auto&& kernel) { return kernel.bytes(); });
}

template <class T>
Status solve(GraphProblem<T>& problem) {
  return dispatch(problem, [](auto&& kernel) { return kernel.solve(); });
}

void get(GraphKernel<DROPDTW_REAL>& found) { found = {&bytes<DROPDTW_REAL>, &solve<DROPDTW_REAL>}; }

}  // namespace dropdtw::DROPDTW_ISA
