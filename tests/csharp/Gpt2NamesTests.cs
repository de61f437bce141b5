using System.IO;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Hugging Face's GPT-2 files are read without conversion. Their logits: tests/capi/gpt2_names.cpp.</summary>
[TestFixture]
public class Gpt2NamesTests {
  [Test]
  public void AFileOfTransformersIsReadByName() {
    string path = Path.Combine(Nets.SourceTree, "tests/conformance/fixtures/gpt2/model.safetensors");
    using (var context = new Context())
    using (Model model = Model.Builtin(context, "gpt", 5, new { layers = 2, width = 24, heads = 3, context = 16, vocabulary = 61 }))
    using (FileStream file = File.OpenRead(path)) {
      var told = Assert.Throws<NotFoundException>(() => model.Read(file));
      StringAssert.Contains("token_embedding.weight", told.Message);
      file.Position = 0;
      ReadReport report = model.Read(file, rename: Model.Gpt2Names);
      Assert.AreEqual(model.Parameters.Count, report.Read);
      Assert.IsEmpty(report.Missing.Concat(report.Unexpected));
    }
  }
}
