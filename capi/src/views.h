// The host's views, looked at before they are believed.
#pragma once

#include <scaletrain/view.h>

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "train/host_view.h"

namespace st::capi {

/// A view that is read: a dtype and a rank that exist, dims and strides that are not negative, and bytes for all that the strides reach.
/// `call` goes before messages.
HostView read_view(std::string_view name, const st_view* view, const char* call);
/// The same for one that is written: besides, no two elements share memory.
HostView written_view(std::string_view name, const st_view* view, const char* call);
void require_nested(const HostView& view, const char* call);

/// The elements of an f32 view in row-major order, for the caller to keep. Throws invalid_argument for a NaN too.
std::vector<float> floats_of(std::string_view name, const st_view* view, const char* call);

/// Named views of one call into a list that is kept between calls, so that a step allocates nothing.
void take_views(std::vector<HostView>& views, int64_t n, const st_named_view* theirs, const char* call);

/// Named views of one call, without allocating for as many as a model usually has.
class ViewList {
 public:
  using Look = HostView (*)(std::string_view name, const st_view* view, const char* call);
  ViewList(int64_t n, const st_named_view* views, Look look, const char* call);

  std::span<const HostView> views() const {
    return more_.empty() ? std::span<const HostView>(few_.data(), count_) : std::span<const HostView>(more_);
  }

 private:
  std::array<HostView, 8> few_;
  size_t count_ = 0;
  std::vector<HostView> more_;  // all of them, when they are many
};

}  // namespace st::capi
