#include "conformance.h"

namespace st::conformance {
namespace {

// A view, not a kernel: the executor hands the slot's memory on. Each test that runs a program loads its inputs.
const Cases load_cases(Op::load, {}, [](Suite& s) { s.add({}); });

}  // namespace
}  // namespace st::conformance
