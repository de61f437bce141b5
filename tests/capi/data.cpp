// Data that cannot be trained on is refused when it is opened.
#include <cmath>
#include <limits>

#include "small_run.h"

namespace {

using namespace st::test;

class Data : public testing::Test {
 protected:
  st_status open(const std::string& path, const char* json = R"({"context": 4})") {
    return st_data_files(context, path.c_str(), json, data.out());
  }
  int64_t rows(st_data* of) { return asked<int64_t>(st_data_rows, of); }
  HeldContext context = hold<HeldContext>(st_context_create, nullptr);
  HeldData data;
};

TEST_F(Data, HasAVocabularyOfBytesAndRowsOfTheContext) {
  ASSERT_TRUE(works(open(text_file("rows.txt", 41))));
  EXPECT_EQ(asked<int64_t>(st_data_vocabulary, data), 256);
  EXPECT_EQ(rows(data), 10);  // 41 bytes: 10 windows of 4, and the last target of the last one
}

TEST_F(Data, OptionsAreChecked) {
  const std::string path = text_file("options.txt", 100);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, "{}"), {"context"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, ""), {"st_data_files"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, R"({"context": 0})"), {"context must be a whole number", "got 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, R"({"context": -3})"), {"-3"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, R"({"context": 9223372036854775807})"), {"9223372036854775807"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, R"({"context": 4.5})"), {"context"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, R"({"contxt": 4})"), {"contxt", "context"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, R"({"context": 4, "context": 5})")));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(path, "[4]"), {"JSON object"}));
}

TEST_F(Data, IsSplitWithoutOverlap) {
  ASSERT_TRUE(works(open(text_file("split.txt", 1000))));
  HeldData train, validation;
  ASSERT_TRUE(works(st_data_split(data, 0.25, 0, train.out(), validation.out())));
  EXPECT_EQ(rows(train), (750 - 1) / 4);
  EXPECT_EQ(rows(validation), (250 - 1) / 4);
  data.reset();  // the splits keep the text
  const auto loss = asked<double>(st_data_bigram_loss, train, validation);
  EXPECT_GT(loss, 0);
  EXPECT_LT(loss, std::log(256));
}

TEST_F(Data, FractionsThatLeaveNothingAreRefused) {
  ASSERT_TRUE(works(open(file_of("small.txt", "0123456789"))));
  for (const double fraction : {0.0, 1.0, -0.5, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    HeldData train, validation;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_split(data, fraction, 0, train.out(), validation.out()), {"fraction"})) << fraction;
  }
  HeldData train, validation;
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_data_split(data, 0.9, 0, train.out(), validation.out()), {"small.txt", "10 tokens", "context 4"}));
}

}  // namespace
