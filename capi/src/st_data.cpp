#include "base/json.h"
#include "guard.h"
#include "objects.h"
#include "train/bigram.h"

using namespace st;
using namespace st::capi;

namespace {

std::shared_ptr<DataObject> windows(std::shared_ptr<const TokenSource> source, TokenRange range, int64_t context) {
  auto object = std::make_shared<DataObject>();
  object->source = std::move(source);
  object->range = range;
  object->context = context;
  object->dataset = std::make_shared<TokenWindows>(object->source, range, context);
  return object;
}

int64_t context_of(const char* json) {
  check(json != nullptr, "st_data_files: json is NULL; give {\"context\": tokens in a row}");
  const Json object = parse_json(json, "st_data_files: json");
  check(object.is_object(), "st_data_files: a JSON object is needed, got ", object.dump());
  for (const auto& [key, value] : object.items())
    check(key == "context", "st_data_files: unknown key \"", key, "\"; the key is \"context\"");
  check(object.contains("context") && object["context"].is_number_integer(), "st_data_files: \"context\" (whole number) is missing");
  const auto context = object["context"].get<int64_t>();
  check(context >= 1, "st_data_files: context is ", context, "; give at least 1");
  return context;
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

st_status st_data_destroy(st_data* data) {
  return guard([&] { drop(data); });
}

st_status st_data_split(st_data* data, double fraction, st_data** train, st_data** validation) {
  return guard([&] {
    given(train, "st_data_split: train");
    given(validation, "st_data_split: validation");
    const auto whole = peek(data);
    check(fraction > 0 && fraction < 1, "st_data_split: fraction is ", fraction, "; give a part between 0 and 1");
    const Split split = split_tokens(whole->range.count, fraction, whole->context, whole->source->path());
    const auto within = [&](TokenRange range) { return TokenRange{whole->range.first + range.first, range.count}; };
    hand_out(train, windows(whole->source, within(split.train), whole->context));
    hand_out(validation, windows(whole->source, within(split.validation), whole->context));
  });
}

st_status st_data_rows(st_data* data, int64_t* rows) {
  return guard([&] { given(rows, "st_data_rows: rows") = peek(data)->dataset->rows(); });
}

st_status st_data_vocabulary(st_data* data, int64_t* vocabulary) {
  return guard([&] { given(vocabulary, "st_data_vocabulary: vocabulary") = peek(data)->source->vocabulary(); });
}

namespace {

/// Reads tokens in pieces, since a source may be larger than memory.
TokenAt reader(const DataObject& data, std::vector<int32_t>& piece) {
  return [&data, &piece, first = int64_t{-1}](int64_t i) mutable -> int64_t {
    constexpr int64_t kPiece = 1 << 16;
    if (first < 0 || i < first || i >= first + static_cast<int64_t>(piece.size())) {
      first = i;
      piece.resize(static_cast<size_t>(std::min(kPiece, data.range.count - i)));
      data.source->read(data.range.first + first, piece);
    }
    return piece[static_cast<size_t>(i - first)];
  };
}

}  // namespace

st_status st_data_bigram_loss(st_data* train, st_data* validation, double* loss) {
  return guard([&] {
    given(loss, "st_data_bigram_loss: loss");
    const auto t = peek(train);
    const auto v = peek(validation);
    std::vector<int32_t> train_piece, validation_piece;
    *loss = bigram_loss(t->range.count, reader(*t, train_piece), v->range.count, reader(*v, validation_piece), t->source->vocabulary());
  });
}
