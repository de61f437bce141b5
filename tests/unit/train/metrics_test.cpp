#include "report/metrics.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "refusal.h"
#include "report/step_history.h"

namespace st {
namespace {

struct Scratch {  // a file that is deleted when the test ends
  std::string path = testing::TempDir() + "metrics_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  ~Scratch() { std::filesystem::remove(path); }
  std::string text() const {
    std::stringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
};

StepReport report_of(int64_t step) {
  StepReport report;
  report.step = step;
  return report;
}

std::string line_of(int64_t step) {
  JsonLine line;
  return log_line(line, report_of(step));
}

const StepReport kReport{.step = 12,
                         .loss = 3.21,
                         .lr = 0.0003,
                         .grad_norm = 1.7,
                         .loss_scale = 65536,
                         .skipped = false,
                         .tokens = 24576,
                         .tokens_per_second = 9000,
                         .milliseconds = 120,
                         .memory_bytes = 123};

TEST(Metrics, WriteTheLineOfTheContract) {
  JsonLine line;
  EXPECT_EQ(log_line(line, kReport),
            "{\"step\":12,\"loss\":3.21,\"lr\":0.0003,\"grad_norm\":1.7,\"loss_scale\":65536,\"skipped\":false,\"tokens\":24576,"
            "\"tokens_per_second\":9000,\"milliseconds\":120,\"memory_bytes\":123}\n");
  EXPECT_TRUE(log_line(line, {.step = 1, .gradient_noise_scale = 37.5}).ends_with(",\"memory_bytes\":0,\"gradient_noise_scale\":37.5}\n"));
  EXPECT_TRUE(log_line(line, {.step = 1, .exchange_milliseconds = 2.5, .exchange_hidden = 0.75, .straggler = 1.25})
                  .ends_with(",\"memory_bytes\":0,\"exchange_milliseconds\":2.5,\"exchange_hidden\":0.75,\"straggler\":1.25}\n"));
  EXPECT_EQ(exchange_line(line, "over a \"net\""), "{\"exchange\":{\"devices\":\"over a \\\"net\\\"\"}}\n");
  EXPECT_EQ(log_line(line, "00ff", 2.9), "{\"state\":\"00ff\",\"validation_loss\":2.9}\n");
}

TEST(Metrics, WriteAndReadAnEvaluationsLine) {
  JsonLine line;
  const ValidationPoint point{.step = 100, .loss = 2.9, .metrics = {{"metric.accuracy", 0.91}, {"metric.x", NAN}}};
  EXPECT_EQ(log_line(line, point), "{\"evaluation\":{\"step\":100,\"validation_loss\":2.9,\"metric.accuracy\":0.91,\"metric.x\":null}}\n");
  const auto read = evaluation_of_line(log_line(line, point));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(log_line(line, *read), log_line(line, point));
  EXPECT_EQ(log_line(line, {.step = 1, .loss = 2}, true), "{\"evaluation\":{\"step\":1,\"ema_val_loss\":2}}\n");
  EXPECT_FALSE(evaluation_of_line(log_line(line, {.step = 1, .loss = 2}, true)));
  for (const char* other : {"{\"step\":1}", "{\"evaluation\":3}", "{\"evaluation\":{\"step\":1,\"valid", ""})
    EXPECT_FALSE(evaluation_of_line(other));
}

TEST(Metrics, WriteNineDigitsAndNullForWhatIsNotFinite) {
  JsonLine line;
  StepReport report = report_of(1);
  report.loss = 1.0 / 3;
  report.grad_norm = std::numeric_limits<double>::infinity();
  report.skipped = true;
  const std::string& text = log_line(line, report);
  EXPECT_TRUE(says(text, {"\"loss\":0.333333333,", "\"grad_norm\":null,", "\"skipped\":true,"}));
  EXPECT_EQ(log_line(line, "00", std::nan("")), "{\"state\":\"00\",\"validation_loss\":null}\n");
}

TEST(Metrics, EachLineIsInTheFileWhenWriteReturns) {
  const Scratch scratch;
  MetricsLog log(scratch.path);
  std::string expected;
  for (int64_t step = 1; step <= 3; ++step) {
    log.write(report_of(step));
    expected += line_of(step);
    EXPECT_EQ(scratch.text(), expected);
  }
  log.finish("ab", 2.5);
  EXPECT_EQ(scratch.text(), expected + "{\"state\":\"ab\",\"validation_loss\":2.5}\n");
}

TEST(Metrics, ANewRunStartsItsLogAnew) {
  const Scratch scratch;
  MetricsLog(scratch.path).write(report_of(7));
  MetricsLog(scratch.path).write(report_of(1));
  EXPECT_EQ(scratch.text(), line_of(1));
}

TEST(Metrics, AResumedRunDropsWhatCameAfterItsStep) {
  const Scratch scratch;
  {
    MetricsLog log(scratch.path);
    log.append("{\"model\":\"gpt\"}\n");
    for (int64_t step = 1; step <= 5; ++step) log.write(report_of(step));
    log.finish("ab", 2.5);
    log.append("{\"step\":6,\"lo");  // as after a full disk
  }
  {
    std::string seen;
    MetricsLog log(scratch.path, 3, [&](std::string_view kept) { seen = kept; });
    EXPECT_EQ(seen, scratch.text());
    EXPECT_EQ(scratch.text(), "{\"model\":\"gpt\"}\n" + line_of(1) + line_of(2) + line_of(3));
    log.write(report_of(4));
  }
  MetricsLog(scratch.path, 4).finish("cd", 1);
  EXPECT_EQ(scratch.text(),
            "{\"model\":\"gpt\"}\n" + line_of(1) + line_of(2) + line_of(3) + line_of(4) + "{\"state\":\"cd\",\"validation_loss\":1}\n");
}

TEST(Metrics, AnEvaluationThatIsMadeAgainIsInTheLogOnce) {
  const Scratch scratch;
  const ValidationPoint first{.step = 2, .loss = 1.0 / 3}, second{.step = 2, .loss = 0.25};
  {
    MetricsLog log(scratch.path);
    log.write(report_of(2));
    log.write(first, false);
    log.write(first, true);
    log.finish("ab", 1.0 / 3);
  }
  const std::string whole = scratch.text();
  MetricsLog log(scratch.path, 2);
  log.write(first, false);
  log.write(first, true);
  log.finish("ab", 1.0 / 3);
  EXPECT_EQ(scratch.text(), whole);
  log.write(second, false);
  EXPECT_TRUE(scratch.text().ends_with("\"validation_loss\":0.25}}\n"));
}

TEST(Metrics, AResumedRunWithoutALogStartsOne) {
  const Scratch scratch;
  MetricsLog(scratch.path, 3).write(report_of(4));
  EXPECT_EQ(scratch.text(), line_of(4));
}

TEST(Metrics, ALogIsCutAfterTheLastWholeStep) {
  const std::string log = line_of(1) + line_of(2);
  EXPECT_EQ(log_until(log, 2), log);
  EXPECT_EQ(log_until(log, 9), log);
  EXPECT_EQ(log_until(log, 1), line_of(1));
  EXPECT_EQ(log_until(log, 0), "");
  EXPECT_EQ(log_until("", 5), "");
  EXPECT_EQ(log_until(log.substr(0, log.size() - 1), 2), line_of(1));  // torn
  EXPECT_EQ(log_until(line_of(1) + "{\"state\":\"x\"}\n", 1), line_of(1));
  JsonLine line;
  const std::string evaluated = log_line(line, ValidationPoint{.step = 1, .loss = 2});
  EXPECT_EQ(log_until(line_of(1) + evaluated + line_of(2), 1), line_of(1) + evaluated);
  EXPECT_EQ(log_until(evaluated + line_of(1), 0), "");  // written by on_step, before the step's own line
}

TEST(Metrics, ALineIsReadBack) {
  JsonLine line;
  StepReport report = kReport;
  report.skipped = true;
  report.gradient_noise_scale = 8;
  report.exchange_milliseconds = 0.5;
  report.exchange_hidden = 0.25;
  report.straggler = 1.5;
  const std::string written = log_line(line, report);
  const auto read = report_of_line(written);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(log_line(line, *read), written);
  const auto skipped = report_of_line("{\"step\":7,\"loss\":null,\"loss_scale\":\"\"}\n");
  ASSERT_TRUE(skipped.has_value());
  EXPECT_EQ(skipped->step, 7);
  EXPECT_TRUE(std::isnan(skipped->loss) && std::isnan(skipped->loss_scale) && std::isnan(skipped->lr));
  for (const char* other : {"", "{}", "{\"state\":\"ab\"}", "{\"step\":6,\"lo", "{\"step\":}", "{\"step\":1} {", "[1]"})
    EXPECT_FALSE(report_of_line(other).has_value()) << other;
}

TEST(StepHistory, OfALongRunKeepsSomeStepsOfAll) {
  StepHistory history;
  for (int64_t step = 1; step <= 100'000; ++step) history.add(report_of(step));
  const std::vector<StepReport>& kept = history.steps();
  EXPECT_GE(kept.size(), 256U);
  EXPECT_LE(kept.size(), 512U);
  EXPECT_EQ(kept.front().step, 1);
  EXPECT_GT(kept.back().step, 99'000);
  for (size_t i = 2; i < kept.size(); ++i) EXPECT_EQ(kept[i].step - kept[i - 1].step, kept[1].step);
  history.forget_after(500);
  EXPECT_LE(history.steps().back().step, 500);
}

TEST(StepHistory, BeginsWithWhatTheLogTells) {
  StepHistory history;
  for (int64_t step = 4; step <= 6; ++step) history.add(report_of(step));
  std::string log = "{\"model\":\"gpt\"}\n" + line_of(1) + line_of(2) + line_of(2) + "{\"step\":3,\"lo\n";
  for (int64_t step = 3; step <= 9; ++step) log += line_of(step);
  history.add_earlier(log + "{\"step\":");
  std::vector<int64_t> steps;
  for (const StepReport& report : history.steps()) steps.push_back(report.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 4, 5, 6}));  // the first line of step 3 is torn

  std::string long_log;
  for (int64_t step = 1; step <= 5000; ++step) long_log += line_of(step);
  StepHistory resumed;
  resumed.add_earlier(long_log);
  resumed.add(report_of(5008));
  EXPECT_LE(resumed.steps().size(), 512U);
  EXPECT_EQ(resumed.steps().front().step, 1);
  EXPECT_EQ(resumed.steps().back().step, 5008);
}

TEST(Metrics, NameThePathThatCannotBeWritten) {
  const std::string path = testing::TempDir() + "no/such/folder/log.jsonl";
  const Error error = error_of([&] { const MetricsLog log(path); });
  EXPECT_EQ(error.code(), Code::io);
  EXPECT_EQ(error.place.file, path);
  EXPECT_TRUE(says(error, path));
}

}  // namespace
}  // namespace st
