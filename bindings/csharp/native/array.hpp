// Converts C# arrays to views of the library and back. C# pins the arrays; nothing is copied.
#pragma once

#include <cstdint>
#include <scaletrain/view.hpp>
#include <vector>

namespace scaletrain::csharp {

/// ScaleTrain/RawView.cs has the same struct.
struct RawView {
  int32_t dtype, rank, has_strides, writable;
  int64_t dims[8], strides[8];
  void* data;
  int64_t bytes;
  const char* name;  // null for an unnamed view
  int32_t device, reserved;
};

struct RawViews {
  int64_t count;
  const RawView* views;
};

inline View view_of(const RawView& raw) {
  const st_view plain{raw.dtype, raw.rank,  raw.dims,   raw.has_strides != 0 ? raw.strides : nullptr,
                      raw.data,  raw.bytes, raw.device, raw.reserved};
  if (raw.writable != 0) return View(plain);
  View view(static_cast<DType>(raw.dtype), static_cast<const void*>(raw.data), std::vector<int64_t>(raw.dims, raw.dims + raw.rank),
            raw.bytes);
  if (raw.has_strides != 0) view.strided(std::vector<int64_t>(raw.strides, raw.strides + raw.rank));
  return view.on_device(raw.device);
}

inline std::vector<View> list_of(const RawViews* raw) {
  std::vector<View> views;
  if (raw == nullptr) return views;
  views.reserve(static_cast<size_t>(raw->count));
  for (int64_t i = 0; i < raw->count; ++i) views.push_back(view_of(raw->views[i]));
  return views;
}

inline Views named_of(const RawViews* raw) {
  std::vector<NamedView> views;
  if (raw == nullptr) return Views();
  views.reserve(static_cast<size_t>(raw->count));
  for (int64_t i = 0; i < raw->count; ++i) views.push_back({raw->views[i].name, view_of(raw->views[i])});
  return Views(std::move(views));
}

inline RawView raw_of(const View& view, bool writable) {
  RawView raw{};
  raw.dtype = static_cast<int32_t>(view.dtype());
  raw.rank = view.rank();
  raw.writable = writable ? 1 : 0;
  for (int32_t i = 0; i < raw.rank; ++i) raw.dims[i] = view.dim(i);
  raw.data = view.data();
  raw.bytes = view.bytes();
  raw.device = view.device();
  return raw;
}

inline std::vector<RawView> raw_of(const std::vector<View>& views, bool writable) {
  std::vector<RawView> all;
  all.reserve(views.size());
  for (const View& view : views) all.push_back(raw_of(view, writable));
  return all;
}

}  // namespace scaletrain::csharp
