#include <array>

#include "base/callback_reason.h"
#include "base/json.h"
#include "context_object.h"
#include "data/callback_rows.h"
#include "data/subset.h"
#include "data_objects.h"
#include "guard.h"
#include "host_loan.h"
#include "strided_layout.h"
#include "train/bigram.h"

using namespace st;
using namespace st::capi;

namespace {

constexpr int64_t kMaxFields = 1024;

std::shared_ptr<DataObject> rows_of(std::shared_ptr<const Dataset> dataset) {
  auto object = std::make_shared<DataObject>();
  object->dataset = std::move(dataset);
  return object;
}

std::shared_ptr<DataObject> windows(std::shared_ptr<const TokenSource> source, TokenRange range, int64_t context) {
  auto object = std::make_shared<DataObject>();
  object->source = std::move(source);
  object->range = range;
  object->context = context;
  object->dataset = std::make_shared<TokenWindows>(object->source, range, context);
  return object;
}

int64_t context_of(const char* json) {
  check(json != nullptr, "st_data_files: json is NULL; give {\"context\": tokens per row}");
  const Json object = parse_settings(json, "st_data_files: json");
  check(object.is(Json::Kind::object), "st_data_files: json must be a JSON object, got ", object.dump());
  for (const auto& [key, value] : object.members())
    check(key == "context", "st_data_files: unknown key \"", key, "\"; the only key is \"context\"");
  const Json* value = object.find("context");
  check(value != nullptr, "st_data_files: \"context\" (whole number) is missing");
  const auto context = value->as_whole();
  check(context && *context >= 1, "st_data_files: context must be a whole number in [1, 2^63), got ", value->dump());
  return *context;
}

HostArray array_of(int64_t rows, const st_named_view& theirs) {
  const std::string name = text_given(theirs.name, "st_data_arrays: an array's name");
  return about_tensor(name, [&]() -> HostArray {
    const std::string what = text("st_data_arrays: array \"", name, "\"");
    const StridedLayout layout = layout_of(what, theirs.view);
    check(layout.shape.rank() >= 1 && layout.shape[0] == rows, what, " has shape ", layout.shape, ", its first dimension must be the ",
          rows, " rows");
    require(layout.compact, Code::unsupported, what, " has strides that are not row-major without gaps; copy it to a contiguous array");
    return {{name, layout.dtype, Shape(layout.shape.dims().subspan(1))}, theirs.view.data};
  });
}

Field field_of(const st_field& theirs) {
  const std::string name = text_given(theirs.name, "st_data_callback: a field's name");
  return about_tensor(name, [&]() -> Field {
    const std::string what = text("st_data_callback: field \"", name, "\"");
    check(theirs.rank < kMaxDims, what, " has rank ", theirs.rank, "; a row has at most ", kMaxDims - 1, " dimensions");
    const StridedLayout layout = layout_of(what, theirs.dtype, theirs.rank, theirs.dims, nullptr);
    return {name, layout.dtype, layout.shape};
  });
}

/// Passes a batch's memory to the host's fill. Only one call makes rows at a time, so the views are kept and only their row count changes.
class HostFill {
 public:
  HostFill(st_fill_fn fill, void* user, std::span<const Field> fields, std::shared_ptr<HostLoan> loan)
      : fill_(fill), user_(user), loan_(std::move(loan)), dims_(fields.size()) {
    for (size_t i = 0; i < fields.size(); ++i) {
      std::ranges::copy(fields[i].shape, dims_[i].begin() + 1);
      row_bytes_.push_back(fields[i].row_bytes());
      views_.push_back({static_cast<st_dtype>(fields[i].dtype), fields[i].shape.rank() + 1, dims_[i].data(), nullptr, nullptr, 0, 0, 0});
    }
  }
  HostFill(const HostFill&) = delete;
  HostFill& operator=(const HostFill&) = delete;

  void make(std::span<const int64_t> rows, std::span<const FieldView> out) {
    const auto count = static_cast<int64_t>(rows.size());
    for (size_t i = 0; i < out.size(); ++i) {
      dims_[i][0] = count;
      views_[i].data = out[i].data;
      views_[i].bytes = count * row_bytes_[i];
    }
    const st_status status = ask_host(fill_, user_, count, rows.data(), std::ssize(views_), views_.data());
    if (status != ST_OK)
      fail(Code::callback, text("data: the host's fill returned ", text_of_answer(status), " for ", count, " rows, starting at row ",
                                count > 0 ? rows[0] : -1));
  }

 private:
  st_fill_fn fill_;
  void* user_;
  std::shared_ptr<HostLoan> loan_;
  std::vector<std::array<int64_t, kMaxDims>> dims_;
  std::vector<int64_t> row_bytes_;
  std::vector<st_view> views_;
};

void check_counts(const char* call, int64_t rows, int64_t n) {
  check(rows >= 1, call, ": rows is ", rows, "; give at least 1");
  check(n >= 1 && n <= kMaxFields, call, ": n is ", n, "; give 1 to ", kMaxFields, " fields");
}

/// Hands out both handles or none.
void hand_out_parts(st_data** train, std::shared_ptr<DataObject> training, st_data** validation, std::shared_ptr<DataObject> validating) {
  hand_out(train, std::move(training));
  try {
    hand_out(validation, std::move(validating));
  } catch (...) {
    take_back(*train);
    *train = nullptr;
    throw;
  }
}

const DataObject& of_files(const DataObject& data, const char* call) {
  require(data.source != nullptr, Code::wrong_state, call, ": this data is not from files and has no tokens; use st_data_files");
  return data;
}

}  // namespace

st_status st_data_files(st_context* context, const char* path, const char* json, st_data** data) {
  return guard([&] {
    given(data, "st_data_files: data");
    peek(context);
    auto source = std::make_shared<const TokenSource>(text_given(path, "st_data_files: path"));
    const int64_t length = context_of(json);
    const Split split = split_tokens(source->size(), 0, length, path);
    hand_out(data, windows(std::move(source), split.train, length));
  });
}

st_status st_data_destroy(st_data* data) { return drop(data); }

st_status st_data_arrays(st_context* context, int64_t rows, int64_t n, const st_named_view* arrays, st_release_fn release, void* user,
                         st_data** data) {
  return guard([&] {
    given(data, "st_data_arrays: data");
    peek(context);
    check_counts("st_data_arrays", rows, n);
    given(arrays, "st_data_arrays: arrays");
    std::vector<HostArray> taken;
    for (int64_t i = 0; i < n; ++i) taken.push_back(array_of(rows, arrays[i]));
    const auto loan = std::make_shared<HostLoan>(release, user);
    hand_out(data, rows_of(std::make_shared<HostArrays>(rows, std::move(taken), loan)));
    loan->accept();
  });
}

st_status st_data_callback(st_context* context, int64_t rows, int64_t n, const st_field* fields, st_fill_fn fill, st_release_fn release,
                           void* user, st_data** data) {
  return guard([&] {
    given(data, "st_data_callback: data");
    peek(context);
    check_counts("st_data_callback", rows, n);
    given(fields, "st_data_callback: fields");
    check(fill != nullptr, "st_data_callback: fill is NULL");
    std::vector<Field> taken;
    for (int64_t i = 0; i < n; ++i) taken.push_back(field_of(fields[i]));
    const auto loan = std::make_shared<HostLoan>(release, user);
    const auto host = std::make_shared<HostFill>(fill, user, taken, loan);
    hand_out(data, rows_of(std::make_shared<CallbackRows>(rows, std::move(taken), [host](auto ids, auto out) { host->make(ids, out); })));
    loan->accept();
  });
}

st_status st_data_split(st_data* data, double fraction, int64_t seed, st_data** train, st_data** validation) {
  return guard([&] {
    given(train, "st_data_split: train");
    given(validation, "st_data_split: validation");
    const auto whole = peek(data);
    check(fraction > 0 && fraction < 1, "st_data_split: fraction is ", fraction, "; give a number between 0 and 1");
    if (whole->source == nullptr) {
      const RowSplit split = split_rows(whole->dataset, fraction, static_cast<uint64_t>(seed));
      hand_out_parts(train, rows_of(split.train), validation, rows_of(split.validation));
      return;
    }
    const Split split = split_tokens(whole->range.count, fraction, whole->context, whole->source->path());
    const auto within = [&](TokenRange range) { return TokenRange{whole->range.first + range.first, range.count}; };
    hand_out_parts(train, windows(whole->source, within(split.train), whole->context), validation,
                   windows(whole->source, within(split.validation), whole->context));
  });
}

st_status st_data_rows(st_data* data, int64_t* rows) {
  return guard([&] { given(rows, "st_data_rows: rows") = peek(data)->dataset->rows(); });
}

st_status st_data_vocabulary(st_data* data, int64_t* vocabulary) {
  return guard([&] {
    given(vocabulary, "st_data_vocabulary: vocabulary");
    *vocabulary = of_files(*peek(data), "st_data_vocabulary").source->vocabulary();
  });
}

namespace {

/// Reads tokens in chunks, since a source may be larger than memory.
TokenAt reader(const DataObject& data, std::vector<int32_t>& chunk) {
  return [&data, &chunk, first = int64_t{-1}](int64_t i) mutable -> int64_t {
    constexpr int64_t kChunk = 1 << 16;
    if (first < 0 || i < first || i >= first + static_cast<int64_t>(chunk.size())) {
      first = i;
      chunk.resize(static_cast<size_t>(std::min(kChunk, data.range.count - i)));
      data.source->read(data.range.first + first, chunk);
    }
    return chunk[static_cast<size_t>(i - first)];
  };
}

}  // namespace

st_status st_data_bigram_loss(st_data* train, st_data* validation, double* loss) {
  return guard([&] {
    given(loss, "st_data_bigram_loss: loss");
    const auto t = peek(train);
    const auto v = peek(validation);
    of_files(*t, "st_data_bigram_loss");
    of_files(*v, "st_data_bigram_loss");
    std::vector<int32_t> train_chunk, validation_chunk;
    *loss = bigram_loss(t->range.count, reader(*t, train_chunk), v->range.count, reader(*v, validation_chunk), t->source->vocabulary());
  });
}
