#include "view_load.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "strided_range.h"

namespace st::capi {
namespace {

struct Load {
  const LogicalTensor* tensor = nullptr;
  const HostView* view = nullptr;
};

[[noreturn]] void refuse(Code code, const CheckpointReader& checkpoint, std::string_view tensor, std::string message) {
  Error error(code, std::move(message));
  error.place.file = checkpoint.folder();
  error.place.tensor = tensor;
  throw error;
}

void check_fit(const CheckpointReader& checkpoint, const LogicalTensor& tensor, const HostView& view) {
  const std::string as = tensor.name == view.name ? "" : text(" (loaded as \"", view.name, "\")");
  if (tensor.shape != view.shape)
    refuse(Code::invalid_argument, checkpoint, tensor.name,
           text("load: tensor \"", tensor.name, "\"", as, " in ", checkpoint.folder(), " is ", tensor.shape, ", but the view's dims are ",
                view.shape));
  if (tensor.dtype != view.dtype && !(is_floating(tensor.dtype) && is_floating(view.dtype)))
    refuse(Code::invalid_argument, checkpoint, tensor.name,
           text("load: tensor \"", tensor.name, "\"", as, " in ", checkpoint.folder(), " is ", tensor.dtype, ", but the view's dtype is ",
                view.dtype, "; only floating types are converted"));
}

std::map<std::string_view, const HostView*> by_name(std::span<const HostView> views, const ReadOptions& options) {
  std::map<std::string_view, const HostView*> wanted;
  for (const HostView& view : views)
    if (options.asks_for(view.name))
      check(wanted.emplace(view.name, &view).second, "load: two views are named \"", view.name, "\"; give each name once");
  return wanted;
}

void check_all_is_there(const CheckpointReader& checkpoint, const LoadReport& report) {
  if (!report.missing.empty()) {
    std::vector<std::string> names;
    for (const LogicalTensor& tensor : checkpoint.manifest().tensors) names.push_back(tensor.name);
    const std::string& first = report.missing.front();
    const std::string near = nearest(first, names);
    refuse(Code::invalid_argument, checkpoint, first,
           text("load: ", checkpoint.folder(), " has no tensor \"", first, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?"),
                " (", report.missing.size(), " missing, ", report.unexpected.size(), " unexpected); rename, or load with partial"));
  }
  if (!report.unexpected.empty())
    refuse(Code::invalid_argument, checkpoint, report.unexpected.front(),
           text("load: ", checkpoint.folder(), " holds tensor \"", report.unexpected.front(), "\", which has no view (",
                report.unexpected.size(), " unexpected); give it a view, rename it, or load with partial or names"));
}

std::vector<Load> match(const CheckpointReader& checkpoint, std::span<const HostView> views, const ReadOptions& options,
                        LoadReport& report) {
  const auto wanted = by_name(views, options);
  std::map<const HostView*, const LogicalTensor*> taken;
  std::vector<Load> loads;
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors) {
    const std::string name = options.renamed(tensor.name);
    if (!options.asks_for(name)) continue;
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      report.unexpected.push_back(tensor.name);
      continue;
    }
    const auto [place, is_first] = taken.emplace(found->second, &tensor);
    if (!is_first)
      refuse(Code::invalid_argument, checkpoint, tensor.name,
             text("load: ", checkpoint.folder(), " has two tensors for view \"", name, "\": \"", place->second->name, "\" and \"",
                  tensor.name, "\"; rename one of them"));
    loads.push_back({&tensor, found->second});
  }
  for (const HostView& view : views)
    if (options.asks_for(view.name) && !taken.contains(&view)) report.missing.emplace_back(view.name);
  for (const Load& load : loads) check_fit(checkpoint, *load.tensor, *load.view);
  if (!options.partial) check_all_is_there(checkpoint, report);
  return loads;
}

/// Elements [begin, end) of a tensor, read by one task.
struct Slice {
  Load load;
  int64_t begin, end;
};

std::vector<Slice> slices_of(const std::vector<Load>& loads) {
  constexpr int64_t kBytes = 4 * kChecksumBlock;  // whole blocks of a tensor that was not sharded
  std::vector<Slice> slices;
  for (const Load& load : loads) {
    const int64_t elements = load.tensor->shape.elements(), most = kBytes / bytes_of(load.tensor->dtype);
    for (int64_t begin = 0; begin < elements; begin += most) slices.push_back({load, begin, std::min(begin + most, elements)});
  }
  return slices;
}

void read(const CheckpointReader& checkpoint, const Slice& slice) {
  const auto& [tensor, view] = slice.load;
  const auto width = bytes_of(tensor->dtype);
  const auto bytes = static_cast<size_t>((slice.end - slice.begin) * width);
  if (tensor->dtype == view->dtype && is_compact(*view)) {
    checkpoint.read(*tensor, slice.begin, slice.end, {static_cast<std::byte*>(view->data) + slice.begin * width, bytes});
    return;
  }
  std::vector<std::byte> room(bytes);
  checkpoint.read(*tensor, slice.begin, slice.end, room);
  fill_range(*view, slice.begin, tensor->dtype, room);
}

}  // namespace

void load_views(const CheckpointReader& checkpoint, std::span<const HostView> views, const ReadOptions& options, Views may_be,
                Workers& workers, LoadReport& report) {
  check_renames(options);
  const std::vector<Load> loads = match(checkpoint, views, options, report);
  std::vector<const LogicalTensor*> needed;
  for (const Load& load : loads) needed.push_back(load.tensor);
  if (may_be == Views::unchanged_on_error) checkpoint.check(needed, workers);
  const std::vector<Slice> slices = slices_of(loads);
  workers.run(std::ssize(slices), [&](int64_t i) {
    if (may_be == Views::overwritten) checkpoint.require_not_cancelled();  // else continue: the views are partly written
    read(checkpoint, slices[static_cast<size_t>(i)]);
  });
  report.read = std::ssize(loads);
}

}  // namespace st::capi
