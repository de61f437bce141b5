// Refusals of resume(), which change nothing, and partial loads. tests/equivalence/resume_test.cpp tests that resume is exact.

#include <cmath>
#include <functional>
#include <map>

#include "ir/build.h"
#include "refusal.h"
#include "saved_trainer.h"

namespace st {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ResumeRefusals : public ::testing::Test {
 protected:
  ResumeRefusals() {
    saved_ = training_.trainer();
    losses_of(*saved_, 3);
    save(*saved_, there_);
  }

  /// A trainer that has made `steps` steps.
  static std::unique_ptr<Trainer> other(const Training& training, int steps = 2) {
    auto made = training.trainer();
    losses_of(*made, steps);
    return made;
  }

  /// Expects a refusal, after which the trainer continues as one that never tried to resume.
  void expect_refused(const Training& training, Code code, const std::vector<std::string>& says, int steps = 2) {
    const auto trainer = other(training, steps), untouched = other(training, steps);
    const Error error = error_of([&] { resume_from(there_, *trainer); });
    EXPECT_EQ(error.code(), code) << error.message();
    for (const std::string& word : says) EXPECT_THAT(error.message(), HasSubstr(word));
    EXPECT_EQ(trainer->state_digest(), untouched->state_digest());
    EXPECT_EQ(losses_of(*trainer, 2), losses_of(*untouched, 2));
    EXPECT_EQ(trainer->state_digest(), untouched->state_digest());
  }

  const ScratchFolder folder_{std::string("refusals_") + ::testing::UnitTest::GetInstance()->current_test_info()->name()};
  const std::string there_ = folder_ / "c";
  Training training_{.device = "cpu", .threads = 2, .recipe = {.batch = 3, .accumulate = 2}};
  std::unique_ptr<Trainer> saved_;
};

TEST_F(ResumeRefusals, OfAnotherRunNameBothValues) {
  const auto with = [&](const char* key, const char* value) {
    Training changed = training_;
    changed.recipe.set(key, value);
    return changed;
  };
  expect_refused(with("seed", "5"), Code::invalid_argument, {"seed is 5 here and 0"});
  expect_refused(with("batch", "2"), Code::invalid_argument, {"batch is 2 here and 3"});
  expect_refused(with("accumulate", "3"), Code::invalid_argument,
                 {"micro-batches of a step is 3 here and 2", "make the trainer with \"micro_batches\": 2"});
}

TEST_F(ResumeRefusals, OfOtherDataNameBoth) {
  const auto of = [&](const std::shared_ptr<const Dataset>& data) {
    const auto trainer = training_.trainer_of(training_.model(), data);
    const std::string before = trainer->state_digest();
    const std::string message = refusal([&] { resume_from(there_, *trainer); });
    EXPECT_EQ(trainer->state_digest(), before);
    return message;
  };
  EXPECT_THAT(of(std::make_shared<Sequences>(60, 7, 17)),
              AllOf(HasSubstr("60 rows of tokens i32 [7]"), HasSubstr("50 rows of tokens i32 [7], targets")));
  EXPECT_THAT(of(nullptr), HasSubstr("the data is none here and 50 rows"));
  EXPECT_THAT(of(std::make_shared<Sequences>(50, 7, 17, true)),
              HasSubstr("the same number of rows here as in the checkpoint but other values"));
}

// Not not_found: a host that reads "no checkpoint" in it trains from step 0, and retention removes the run.
TEST_F(ResumeRefusals, OfAModelWithMoreOrFewerTensorsHaveOneCode) {
  Training more = training_, fewer = training_;
  more.options.layers = training_.options.layers + 1;
  fewer.options.layers = training_.options.layers - 1;
  expect_refused(more, Code::invalid_argument, {"has no tensor", "missing"});
  expect_refused(fewer, Code::invalid_argument, {"holds tensor", "unexpected"});
}

// Names and shapes are equal.
TEST_F(ResumeRefusals, OfAModelOfOtherHeads) {
  Training changed = training_;
  changed.options.heads = 2;
  expect_refused(changed, Code::invalid_argument, {"graph", "heads", "partial"});
  const auto trainer = other(changed, 0);
  EXPECT_THAT(resume_from(there_, *trainer, {.partial = true, .renames = {}, .names = {}}).changed, ElementsAre(StartsWith("graph: ")));
}

// The first writers of version 1 saved no digests.
TEST_F(ResumeRefusals, ButOfWhatIsNotKnownNothing) {
  CheckpointContent content = content_of(*saved_, {});
  for (const char* key : {"\"graph\":\"", "\"data\":\""}) {
    const size_t begin = content.training.find(key);
    ASSERT_NE(begin, std::string::npos);
    content.training.erase(begin - 1, std::string(key).size() + 34);  // with the comma before, 32 digits and the quote after
  }
  const std::string old = folder_ / "old";
  save(content, old);
  const auto trainer = other(training_, 0);
  EXPECT_THAT(resume_from(old, *trainer).changed, IsEmpty());
  EXPECT_EQ(trainer->state_digest(), saved_->state_digest());
}

TEST_F(ResumeRefusals, OfAByteAnywhereNameItAndUndoWhatWasReadAlready) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    flip_byte(there_ + "/" + file, 1);
    for (const int steps : {0, 2}) expect_refused(training_, Code::corrupt, {file, "block 0"}, steps);
    flip_byte(there_ + "/" + file, 1);
  }
  const auto trainer = other(training_);
  resume_from(there_, *trainer);
  EXPECT_EQ(trainer->state_digest(), saved_->state_digest()) << "the bytes are back";
}

TEST_F(ResumeRefusals, ACancelChangesNothing) {
  const auto trainer = other(training_), untouched = other(training_);
  trainer->cancel();
  EXPECT_EQ(error_of([&] { resume_from(there_, *trainer); }).code(), Code::cancelled);
  EXPECT_EQ(trainer->state_digest(), untouched->state_digest());
  EXPECT_EQ(trainer->step().loss, untouched->step().loss) << "and is used up";
}

TEST_F(ResumeRefusals, WithoutRoomForCopiesTheBlocksAreVerifiedFirst) {
  const auto trainer = [&](int64_t limit) {
    const auto context = std::make_shared<Context>(
        ContextOptions{.device = "cpu", .threads = 2, .memory_limit = limit, .log = {}, .parallel = {}, .memory = {}});
    return training_.trainer_of(std::make_shared<Model>(context, build_gpt(training_.options), 1), training_.data());
  };
  const int64_t need = trainer(0)->model().context().backend().allocated_bytes();
  const auto tight = trainer(need + 1000);
  tight->step();
  const std::string before = tight->state_digest();
  flip_byte(there_ + "/optimizer.safetensors", 1);
  EXPECT_EQ(error_of([&] { resume_from(there_, *tight); }).code(), Code::corrupt);
  EXPECT_EQ(tight->state_digest(), before);
  flip_byte(there_ + "/optimizer.safetensors", 1);
  resume_from(there_, *tight);
  EXPECT_EQ(tight->state_digest(), saved_->state_digest());
  EXPECT_EQ(losses_of(*tight, 2), losses_of(*saved_, 2));
}

TEST_F(ResumeRefusals, WhileAStepIsUnderWay) {
  const auto trainer = other(training_);
  ASSERT_FALSE(trainer->advance(0));
  EXPECT_EQ(error_of([&] { resume_from(there_, *trainer); }).code(), Code::wrong_state);
  trainer->abandon();
  resume_from(there_, *trainer);
  EXPECT_EQ(trainer->state_digest(), saved_->state_digest());
}

TEST_F(ResumeRefusals, OfAContentWhileAnotherTrainersUpdateIsHalfDone) {
  const auto model = training_.model();
  const auto first = training_.trainer_of(model, training_.data()), second = training_.trainer_of(model, training_.data());
  const std::string before = model->digest();
  for (;;) {
    ASSERT_FALSE(first->advance(0));
    const Error error = error_of([&] {
      content_of(*second, {});
      fail(Code::ok, "not yet");
    });
    if (error.code() == Code::ok) continue;
    EXPECT_EQ(error.code(), Code::busy);
    break;
  }
  while (!first->advance(0)) continue;
  EXPECT_EQ(content_of(*second, {}).step, 0);
  EXPECT_NE(model->digest(), before);
}

TEST_F(ResumeRefusals, ButTakeARecipeThatDiffersElsewhereAndSayWhere) {
  Training changed = training_;
  changed.recipe.set("lr", "0.0005");
  changed.recipe.set("dropout", "0.1");
  const auto trainer = other(changed, 0);
  EXPECT_THAT(resume_from(there_, *trainer).changed,
              ElementsAre("lr: 0.0005 here, 0.001 in the checkpoint", "dropout: 0.1 here, 0.0 in the checkpoint"));
  EXPECT_EQ(trainer->state_digest(), saved_->state_digest());
  const auto same = other(training_, 0);
  const ResumeReport report = resume_from(there_, *same);
  EXPECT_THAT(report.changed, IsEmpty());
  EXPECT_EQ(report.read, std::ssize(same->state_tensors()));
}

TEST_F(ResumeRefusals, AnotherOptimizersStateNeedsPartial) {
  Training changed = training_;
  changed.recipe.set("optimizer", "\"lion\"");  // only moment1
  expect_refused(changed, Code::invalid_argument, {"moment2.", "optimizer: \"lion\" here, \"adamw\" in the checkpoint", "partial"});
  const auto trainer = other(changed, 0);
  const ResumeReport report = resume_from(there_, *trainer, {.partial = true, .renames = {}, .names = {}});
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.unexpected, Each(StartsWith("moment2.")));
  EXPECT_EQ(trainer->model().digest(), saved_->model().digest());
  EXPECT_EQ(trainer->steps(), 3);
}

TEST_F(ResumeRefusals, AnAverageThatTheCheckpointHasNotBeginsAsTheWeight) {
  Training changed = training_;
  changed.recipe.set("ema_decay", "0.5");
  expect_refused(changed, Code::invalid_argument, {"average.", "ema_decay: 0.5 here"}, 0);
  const std::string name = "block.0.mlp.expand.weight";
  // For a parameter that is loaded, and for one that is not.
  for (const std::string& asked : {name, std::string("final_norm.*")}) {
    const auto trainer = other(changed, 0);
    const ResumeReport report = resume_from(there_, *trainer, {.partial = true, .renames = {}, .names = {asked}});
    EXPECT_THAT(report.missing, Contains("average." + (asked == name ? name : "final_norm.gamma")));
    const std::vector<float> old = weights_of(trainer->model(), name);
    std::vector<float> average(old.size());
    const auto view =
        plain_view(name, DType::f32, trainer->model().slot(trainer->model().parameter_named(name)).type.shape, average.data());
    trainer->average(name, view);
    EXPECT_EQ(average, old);
    trainer->step();
    trainer->average(name, view);
    const std::vector<float> now = weights_of(trainer->model(), name);
    for (size_t i = 0; i < now.size(); ++i) EXPECT_NEAR(average[i], 0.5F * (old[i] + now[i]), 1e-7F);
  }
}

TEST_F(ResumeRefusals, StateFollowsARenamedParameter) {
  CheckpointContent content = content_of(*saved_, {});
  for (SnapshotTensor& tensor : content.tensors)
    if (const size_t at = tensor.name.find("block."); at != std::string::npos) tensor.name.replace(at, 6, "h.");
  save(content, folder_ / "renamed");
  content.tensors.clear();
  const auto trainer = other(training_);
  EXPECT_EQ(error_of([&] { resume_from(folder_ / "renamed", *trainer); }).code(), Code::invalid_argument);
  resume_from(folder_ / "renamed", *trainer, {.partial = false, .renames = {{"h.*", "block.*"}}, .names = {}});
  EXPECT_EQ(trainer->state_digest(), saved_->state_digest());
}

TEST_F(ResumeRefusals, NamesThatAreNotAskedForStayAsTheyAre) {
  const auto trainer = other(training_, 0), untouched = other(training_, 0);
  const ResumeReport report = resume_from(there_, *trainer, {.partial = false, .renames = {}, .names = {"block.0.*", "token_*"}});
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.unexpected, IsEmpty());
  for (const SlotId id : trainer->model().parameters()) {
    const std::string& name = trainer->model().slot(id).name;
    const Trainer& like = name.starts_with("block.0.") || name.starts_with("token_") ? *saved_ : *untouched;
    EXPECT_EQ(weights_of(trainer->model(), name), weights_of(like.model(), name)) << name;
  }
  const ReadOptions unknown{.partial = true, .renames = {}, .names = {"blok.*"}};
  EXPECT_TRUE(refuses({"blok.*"}, [&] { resume_from(there_, *trainer, unknown); }));
}

TEST_F(ResumeRefusals, OfATrainingStateThatCannotBe) {
  const CheckpointContent good = content_of(*saved_, {});
  int made = 0;
  const auto refused = [&](const std::string& from, const std::string& to) {
    CheckpointContent bad;
    bad.step = good.step;
    bad.training = good.training;
    bad.recipe = good.recipe;
    bad.tensors = good.tensors;
    const size_t at = bad.training.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << bad.training;
    bad.training.replace(at, from.size(), to);
    const std::string path = folder_ / std::to_string(++made);
    save(bad, path);
    const auto trainer = training_.trainer();
    const std::string before = trainer->state_digest();
    const CheckpointReader reader(path);
    ResumeReport report;
    const Error error = error_of([&] { resume(*trainer, reader, {}, report); });
    EXPECT_EQ(error.code(), Code::corrupt) << to << ": " << error.message();
    EXPECT_EQ(error.place.file, path);
    EXPECT_EQ(trainer->state_digest(), before);
  };
  refused("\"step\":3", "\"step\":-3");
  refused("\"step\":3", "\"step\":\"3\"");
  refused("\"step\":3,", "");
  refused("\"updates\":3", "\"updates\":4");
  refused("\"items\":18", "\"items\":17");
  refused("\"items\":18", "\"items\":9223372036854775807");
  refused("\"tokens\":", "\"tokens\":0.");
  refused("\"kernels\":\"", "\"kernels\":3,\"other\":\"");
  refused("\"fields\":[", "\"fields\":[3,");
  refused("\"loss\":", "\"loss\":true,\"other\":");
  refused("\"loss_scaler\":null", "\"loss_scaler\":3");
}

TEST_F(ResumeRefusals, OfALossScaleThatCannotBe) {
  Training half = training_;
  half.recipe.set("precision", "\"fp16\"");
  const auto trainer = other(half);
  CheckpointContent content = content_of(*trainer, {});
  const size_t at = content.training.find("\"good_steps\":2");
  ASSERT_NE(at, std::string::npos) << content.training;
  content.training.replace(at, 14, "\"good_steps\":-2");
  save(content, folder_ / "scale");
  content.tensors.clear();
  const auto here = other(half, 1), untouched = other(half, 1);
  EXPECT_EQ(error_of([&] { resume_from(folder_ / "scale", *here); }).code(), Code::corrupt);
  EXPECT_EQ(here->state_digest(), untouched->state_digest());
  EXPECT_EQ(here->loss_scale(), untouched->loss_scale());
}

TEST_F(ResumeRefusals, AHostsOwnTensorsAreTakenByName) {
  CheckpointContent content = content_of(*saved_, {});
  content.training = "{}";
  for (SnapshotTensor& tensor : content.tensors) tensor.kind = TensorKind::host;
  save(content, folder_ / "hosts");
  content.tensors.clear();
  const auto trainer = other(training_, 0);
  resume_from(folder_ / "hosts", *trainer);
  EXPECT_EQ(trainer->state_digest(), saved_->state_digest());
  EXPECT_EQ(trainer->steps(), 3);
  EXPECT_EQ(losses_of(*trainer, 3), losses_of(*saved_, 3));
}

// --- only weights

TEST_F(ResumeRefusals, WeightsAloneBeginWithAFreshOptimizer) {
  CheckpointContent content = content_of(*saved_, {});
  content.training = "{}";
  content.step = 0;
  std::erase_if(content.tensors, [](const SnapshotTensor& tensor) { return tensor.kind != TensorKind::parameter; });
  for (SnapshotTensor& tensor : content.tensors) tensor.kind = TensorKind::host;
  save(content, folder_ / "weights");
  content.tensors.clear();
  // The expected run: a trainer on a model with these weights.
  auto model = training_.model();
  ReadReport loaded;
  model->load(CheckpointReader(folder_ / "weights"), {}, loaded);
  const auto fresh = training_.trainer_of(model, training_.data());
  const std::string begun = fresh->state_digest();
  const std::vector<double> losses = losses_of(*fresh, 3);
  for (const int steps : {0, 2}) {
    const auto trainer = other(training_, steps);
    const ResumeReport report = resume_from(folder_ / "weights", *trainer);
    EXPECT_THAT(report.changed, ElementsAre(AllOf(HasSubstr("optimizer state"), HasSubstr("only weights"))));
    EXPECT_THAT(report.missing, IsEmpty());
    EXPECT_EQ(trainer->state_digest(), begun) << steps;
    EXPECT_EQ(losses_of(*trainer, 3), losses) << steps;
  }
}

TEST_F(ResumeRefusals, NanInAHostsTensorsIsNamed) {
  CheckpointContent content = content_of(*saved_, {});
  content.training = "{}";
  for (SnapshotTensor& tensor : content.tensors) {
    tensor.kind = TensorKind::host;
    if (tensor.name != "final_norm.beta") continue;
    tensor.copy = [](int64_t first, std::span<std::byte> out) {
      const std::vector<float> values = {0, 0, NAN, 0, NAN, 0, 0, 0, 0, 0, 0, 0};
      std::copy_n(reinterpret_cast<const std::byte*>(values.data()) + first, out.size(), out.data());
    };
  }
  save(content, folder_ / "nan");
  content.tensors.clear();
  const auto trainer = other(training_), untouched = other(training_);
  EXPECT_TRUE(refuses(Code::not_finite, {"final_norm.beta", "element 2"}, [&] { resume_from(folder_ / "nan", *trainer); }));
  EXPECT_EQ(trainer->state_digest(), untouched->state_digest());
  ReadReport report;
  EXPECT_TRUE(refuses(Code::not_finite, {"final_norm.beta", "element 2"},
                      [&] { trainer->model().load(CheckpointReader(folder_ / "nan"), {}, report); }));
  // 4 bytes per parameter, but no memory for copies.
  Model tight(context_within(5 * parameter_count(training_.options)), build_gpt(training_.options), 9);
  const std::string before = tight.digest();
  EXPECT_TRUE(
      refuses(Code::not_finite, {"final_norm.beta", "element 2"}, [&] { tight.load(CheckpointReader(folder_ / "nan"), {}, report); }));
  EXPECT_EQ(tight.digest(), before);
  EXPECT_EQ(trainer->state_digest(), untouched->state_digest());
}

TEST_F(ResumeRefusals, WeightsAloneGoIntoAModel) {
  Model model(training_.context(), build_gpt(training_.options), 9);
  ReadReport report;
  model.load(CheckpointReader(there_), {}, report);
  EXPECT_EQ(model.digest(), saved_->model().digest());
  EXPECT_EQ(report.read, std::ssize(model.parameters()));
  EXPECT_THAT(report.unexpected, IsEmpty()) << "moments are none of a model's business";

  Model other_model(training_.context(), build_gpt(training_.options), 9);
  const std::string before = other_model.digest();
  flip_byte(there_ + "/model.safetensors", 1);
  EXPECT_EQ(error_of([&] { other_model.load(CheckpointReader(there_), {}, report); }).code(), Code::corrupt);
  EXPECT_EQ(other_model.digest(), before);
}

TEST_F(ResumeRefusals, WeightsOfOtherFloatingTypesAreConverted) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder(program, 0).parameter("w", {2, 3}, {.kind = Init::zeros, .values = {}});
  Model model(training_.context(), std::move(program), 1);
  const std::vector<double> values = {1, -2.5, 1.0 / 3, 1e-3, 65536, -0.0};
  CheckpointContent content;
  SnapshotTensor tensor;
  tensor.name = "w";
  tensor.kind = TensorKind::host;
  tensor.dtype = DType::f64;
  tensor.shape = {2, 3};
  tensor.copy = [&](int64_t first, std::span<std::byte> out) {
    std::copy_n(reinterpret_cast<const std::byte*>(values.data()) + first, out.size(), out.data());
  };
  content.tensors.push_back(tensor);
  save(content, folder_ / "f64");
  ReadReport report;
  model.load(CheckpointReader(folder_ / "f64"), {}, report);
  const std::vector<float> read = weights_of(model, "w");
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(read[i], static_cast<float>(values[i]));
}

}  // namespace
}  // namespace st
