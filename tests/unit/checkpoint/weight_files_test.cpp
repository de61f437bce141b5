#include "checkpoint/weight_files.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "../base/folder_test.h"
#include "safetensors_bytes.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr const char* kMap = "model.safetensors.index.json";

class WeightFilesTest : public FolderTest {
 protected:
  /// Writes a shard with tensors of one byte each.
  void put_shard(const std::string& name, const std::vector<std::string>& tensors, const std::string& dtype = "U8") const {
    std::string json = "{", data;
    for (const std::string& tensor : tensors) {
      json += text(data.empty() ? "" : ",", "\"", tensor, "\":{\"dtype\":\"", dtype, "\",\"shape\":[1],\"data_offsets\":[", data.size(),
                   ",", data.size() + 1, "]}");
      data += tensor[0];
    }
    put(name, with_length(json + "}", data));
  }
  void put_map(const std::string& map) const { put(kMap, R"({"metadata":{"total_size":3},"weight_map":)" + map + "}"); }
  Error error() const {
    return error_of([&] { const WeightFiles files(folder_.string()); });
  }
};

TEST_F(WeightFilesTest, ReadsEveryShardOfAFolderOrItsMap) {
  put_shard("one.safetensors", {"a", "b"});
  put_shard("two.safetensors", {"c"});
  put_shard("rest.safetensors", {"d"}, "I8");
  put_map(R"({"c":"two.safetensors","a":"one.safetensors","b":"one.safetensors","d":"rest.safetensors"})");
  for (const std::string& path : {folder_.string(), folder_.string() + "/", (folder_ / kMap).string()}) {
    const WeightFiles files(path);
    std::string names, values;
    for (const TensorRecord& record : files.tensors()) names += record.name;
    for (const SafetensorsFile& file : files.files())
      for (const TensorRecord& record : file.header().tensors) values += static_cast<char>(file.bytes(record)[0]);
    EXPECT_EQ(names, "abc") << path;
    EXPECT_EQ(values, "abc") << path;
    ASSERT_EQ(files.foreign().size(), 1U);
    EXPECT_EQ(files.foreign()[0].name, "d");
  }
  // As in transformers, the whole file takes precedence over the index.
  put_shard("model.safetensors", {"whole"});
  EXPECT_EQ(WeightFiles(folder_.string()).tensors().at(0).name, "whole");
  EXPECT_EQ(WeightFiles((folder_ / "two.safetensors").string()).tensors().at(0).name, "c");
}

TEST_F(WeightFilesTest, NamesShardAndTensorOfWhatIsNotAsTheMapSays) {
  EXPECT_TRUE(is_error(error(), Code::not_found, {folder_.string(), "neither model.safetensors nor model.safetensors.index.json"}));
  put_shard("one.safetensors", {"a"});
  put_map(R"({"a":"one.safetensors","b":"two.safetensors"})");
  EXPECT_TRUE(is_error(error(), Code::not_found, {kMap, "shard two.safetensors, which has tensor b, does not exist"}));
  EXPECT_EQ(error().place.tensor, "b");
  EXPECT_EQ(error().place.file, (folder_ / "two.safetensors").string());
  put_shard("two.safetensors", {"c"});
  EXPECT_TRUE(is_error(error(), Code::corrupt, {"tensor b: is in no shard, but the index names two.safetensors"}));
  put_map(R"({"a":"one.safetensors","c":"one.safetensors","b":"two.safetensors"})");
  EXPECT_TRUE(is_error(error(), Code::corrupt, {"tensor c: is in shard two.safetensors, but the index names one.safetensors"}));
  put_shard("two.safetensors", {"b", "a"});
  put_map(R"({"a":"one.safetensors","b":"two.safetensors"})");
  EXPECT_TRUE(is_error(error(), Code::corrupt, {"tensor a: is in shard two.safetensors, but the index names one.safetensors"}));
  put_shard("one.safetensors", {"a", "x"});
  put_shard("two.safetensors", {"b", "x"});
  EXPECT_TRUE(is_error(error(), Code::corrupt, {"tensor x: is in two shards, one.safetensors and two.safetensors"}));
  put_shard("two.safetensors", {"b"});
  EXPECT_EQ(WeightFiles(folder_.string()).tensors().size(), 3U) << "a tensor that the index leaves out is read all the same";
}

TEST_F(WeightFilesTest, RefusesAMapThatIsNone) {
  for (const auto& [reason, map] :
       std::vector<std::pair<std::string, std::string>>{{"has no weight_map", R"({"architectures":["GPT2LMHeadModel"]})"},
                                                        {"expected {", "[]"},
                                                        {"given twice", R"({"weight_map":{"a":"one","a":"two"}})"},
                                                        {"is not the name of a file", R"({"weight_map":{"a":"../one.safetensors"}})"},
                                                        {"is not the name of a file", R"({"weight_map":{"a":""}})"},
                                                        {"is not the name of a file", R"({"weight_map":{"a":"one\u0000"}})"},
                                                        {"expected \"", R"({"weight_map":{"a":1}})"},
                                                        {"unexpected text", "{\"weight_map\":{}}x"}}) {
    put(kMap, map);
    EXPECT_TRUE(is_error(error(), Code::corrupt, {kMap, reason})) << map;
  }
}

}  // namespace
}  // namespace st
