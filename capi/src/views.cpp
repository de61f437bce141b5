#include "views.h"

#include <algorithm>

#include "base/error.h"

namespace st::capi {
namespace {

constexpr int64_t kMaxViews = 1024;

HostView believed_view(std::string_view name, const st_view* view, const char* call, const Context* home) {
  check(view != nullptr, call, ": the view of \"", name, "\" is NULL");
  if (!is_of_host(*view)) check_device(text(call, ": \"", name, "\""), *view, home);
  HostView ours;
  ours.name = name;
  ours.dtype = static_cast<DType>(view->dtype);
  check(view->dtype >= ST_F32 && view->dtype <= ST_BOOL, call, ": \"", name, "\" has dtype ", view->dtype,
        "; use one of ST_F32 to ST_BOOL");
  check(view->rank >= 0 && view->rank <= kMaxDims && (view->rank == 0 || view->dims != nullptr), call, ": \"", name, "\" has rank ",
        view->rank, view->dims == nullptr ? " and no dims (NULL)" : "; allowed is 0 to 8");
  ours.shape = Shape(std::span<const int64_t>(view->dims, static_cast<size_t>(view->rank)));
  int64_t elements = 1;
  for (const int64_t dim : ours.shape) {
    check(dim >= 0, call, ": \"", name, "\" has shape ", ours.shape, "; dims must be 0 or more");
    check(!__builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements) && elements <= INT64_MAX / 8, call, ": \"", name,
          "\" has shape ", ours.shape, ", which is too large for any memory");
  }
  if (view->strides == nullptr) {
    ours.strides = row_major(ours.shape);
  } else {
    for (int32_t d = 0; d < view->rank; ++d) {
      check(view->strides[d] >= 0, call, ": \"", name, "\" has stride ", view->strides[d], " in dimension ", d,
            "; strides must be 0 or more: let data be the lowest address");
      ours.strides[static_cast<size_t>(d)] = view->strides[d];
    }
  }
  const int64_t need = extent_bytes(ours.dtype, ours.shape, ours.strides);
  check(need >= 0, call, ": \"", name, "\" of shape ", ours.shape, " has strides that extend beyond any memory");
  check(need == 0 || view->data != nullptr, call, ": \"", name, "\" has no data (NULL)");
  check(view->bytes >= need, call, ": \"", name, "\" of shape ", ours.shape, " needs ", need, " bytes, but it has ", view->bytes);
  ours.data = view->data;
  if (view->device == 0) return ours;
  check(ours.is_plain(), call, ": \"", name, "\" is in the memory of ", device_name(*home),
        ", where it must be row-major without gaps and aligned to its elements; copy it there first");
  check_reach(text(call, ": \"", name, "\""), ours.data, ours.bytes(), *home);
  ours.is_on_device = true;
  return ours;
}

void check_count(int64_t n, const char* call) { check(n >= 0 && n <= kMaxViews, call, ": ", n, " views; it must be 0 to ", kMaxViews); }

/// Checks each view into `ours`, which has the same length.
void look_at(const st_named_view* theirs, ViewList::Look look, const char* call, const Context& home, std::span<HostView> ours) {
  for (size_t i = 0; i < ours.size(); ++i) {
    check(theirs[i].name != nullptr, call, ": view ", i, " has no name (NULL)");
    ours[i] = look(theirs[i].name, &theirs[i].view, call, &home);
  }
}

void take(std::vector<HostView>& views, int64_t n, const st_named_view* theirs, ViewList::Look look, const char* call,
          const Context& home) {
  check_count(n, call);
  views.resize(static_cast<size_t>(n));
  look_at(theirs, look, call, home, views);
}

}  // namespace

int32_t device_number(const Context& context) {
  const MemoryPlace place = context.backend().memory_place();
  return place.type == MemoryPlace::kCuda ? place.index + 1 : 0;
}

std::string device_name(const Context& context) { return text(context.backend().name(), ":", context.backend().memory_place().index); }

void check_device(std::string_view what, const st_view& view, const Context* home) {
  check(view.reserved == 0, what, " has reserved ", view.reserved, "; it must be 0");
  if (view.device == 0) return;
  const int32_t number = home == nullptr ? 0 : device_number(*home);
  check(number != 0, what, " has device ", view.device, "; allowed is 0, the host's memory, the only one in use here: copy it to the ",
        "host first");
  check(view.device == number, what, " has device ", view.device, ", but the context is on ", device_name(*home), "; allowed is ", number,
        ", its memory, or 0, the host's");
}

void check_reach(std::string_view what, const void* data, int64_t bytes, const Context& home) {
  check(home.backend().reaches({reinterpret_cast<uintptr_t>(data)}, bytes), what, " has ", bytes, " bytes that are not in the memory of ",
        device_name(home), "; let data be an address there, or device be 0 for the host's memory");
}

HostView read_view(std::string_view name, const st_view* view, const char* call) { return read_view(name, view, call, nullptr); }

HostView read_view(std::string_view name, const st_view* view, const char* call, const Context* home) {
  return about_tensor(name, [&] { return believed_view(name, view, call, home); });
}

void require_nested(const HostView& view, const char* call) {
  about_tensor(view.name, [&] {
    check(is_nested(view.shape, view.strides), call, ": elements of \"", view.name, "\" of shape ", view.shape,
          " share memory through its strides ", std::span<const int64_t>(view.strides.data(), static_cast<size_t>(view.shape.rank())),
          "; give each element its own place");
  });
}

HostView written_view(std::string_view name, const st_view* view, const char* call) { return written_view(name, view, call, nullptr); }

HostView written_view(std::string_view name, const st_view* view, const char* call, const Context* home) {
  const HostView ours = read_view(name, view, call, home);
  require_nested(ours, call);
  return ours;
}

std::vector<float> floats_of(std::string_view name, const st_view* view, const char* call) {
  const HostView ours = read_view(name, view, call);
  check(ours.dtype == DType::f32, call, ": \"", name, "\" is ", ours.dtype, "; it must be ST_F32");
  if (const int64_t at = first_nan(ours); at >= 0) fail(Code::invalid_argument, text(call, ": \"", name, "\": element ", at, " is NaN"));
  std::vector<float> values(static_cast<size_t>(ours.shape.elements()));
  gather(ours, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

void take_views(std::vector<HostView>& views, int64_t n, const st_named_view* theirs, const char* call, const Context& home) {
  check(theirs != nullptr || n <= 0, call, ": batch is NULL with n = ", n, " views; give the views, or n = 0 for the data's rows");
  take(views, n, theirs, read_view, call, home);
}

void take_written_views(std::vector<HostView>& views, int64_t n, const st_named_view* theirs, const char* call, const Context& home) {
  check(theirs != nullptr || n <= 0, call, " is NULL with ", n, " views; give the views, or 0 of them");
  take(views, n, theirs, written_view, call, home);
}

ViewList::ViewList(int64_t n, const st_named_view* views, Look look, const char* call, const Context& home) {
  check_count(n, call);
  check(n == 0 || views != nullptr, call, " is NULL with ", n, " views");
  count_ = static_cast<size_t>(n);
  if (count_ > few_.size()) more_.resize(count_);
  look_at(views, look, call, home, more_.empty() ? std::span(few_).first(count_) : std::span(more_));
}

}  // namespace st::capi
