using System;
using System.IO;
using System.Linq;
using NUnit.Framework;
using ScaleTrain;

/// <summary>Hugging Face's GPT-2 files are read without conversion.</summary>
[TestFixture]
public class Gpt2NamesTests {
  private const int Rows = 2, Length = 16, Vocabulary = 61;

  private static string Fixture(string name) { return Path.Combine(Nets.SourceTree, "tests/conformance/fixtures/gpt2", name); }

  [Test]
  public void AFileOfTransformersGivesItsLogits() {
    int[] tokens = new int[Rows * Length];
    float[] wanted = new float[tokens.Length * Vocabulary], logits = new float[wanted.Length];
    byte[] answers = File.ReadAllBytes(Fixture("answers.safetensors"));
    int first = 8 + (int)BitConverter.ToInt64(answers, 0);  // after the header: tokens, logits
    Buffer.BlockCopy(answers, first, tokens, 0, Buffer.ByteLength(tokens));
    Buffer.BlockCopy(answers, first + Buffer.ByteLength(tokens), wanted, 0, Buffer.ByteLength(wanted));
    using (var context = new Context())
    using (Model model = Model.Builtin(context, "gpt", 5, new { layers = 2, width = 24, heads = 3, context = Length, vocabulary = Vocabulary })) {
      using (FileStream file = File.OpenRead(Fixture("model.safetensors"))) {
        var told = Assert.Throws<NotFoundException>(() => model.Read(file));
        StringAssert.Contains("token_embedding.weight", told.Message);
        file.Position = 0;
        ReadReport report = model.Read(file, rename: Model.Gpt2Names);
        Assert.AreEqual(model.Parameters.Count, report.Read);
        Assert.IsEmpty(report.Missing.Concat(report.Unexpected));
      }
      using (var predictor = new Predictor(model))
        predictor.Run(new Batch { { "tokens", tokens, Rows, Length } }, new Batch { { "logits", logits, Rows, Length, Vocabulary } });
    }
    for (int i = 0; i < wanted.Length; ++i) Assert.AreEqual(wanted[i], logits[i], 1e-4f);
  }
}
