package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Hugging Face's GPT-2 files are read without conversion. */
class Gpt2NamesTest {
  private static final Path FIXTURES =
      Path.of(System.getenv().getOrDefault("ST_SOURCES", "."), "tests/conformance/fixtures/gpt2");
  private static final int ROWS = 2;
  private static final int LENGTH = 16;
  private static final int VOCABULARY = 61;

  private static ReadReport read(Model model, ReadOptions options) throws IOException {
    try (InputStream file = Files.newInputStream(FIXTURES.resolve("model.safetensors"))) {
      return model.read(file, options);
    }
  }

  @Test
  void aFileOfTransformersGivesItsLogits() throws IOException {
    int[] tokens = new int[ROWS * LENGTH];
    float[] wanted = new float[tokens.length * VOCABULARY], logits = new float[wanted.length];
    ByteBuffer answers = ByteBuffer.wrap(Files.readAllBytes(FIXTURES.resolve("answers.safetensors"))).order(ByteOrder.LITTLE_ENDIAN);
    answers.position(8 + (int) answers.getLong(0));  // after the header: tokens, logits
    answers.asIntBuffer().get(tokens);
    answers.position(answers.position() + Integer.BYTES * tokens.length).slice().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(wanted);
    try (Context context = new Context(); Model model = Model.builtin(context, "gpt",
             Map.of("layers", 2, "width", 24, "heads", 3, "context", LENGTH, "vocabulary", VOCABULARY), 5)) {
      NotFound told = assertThrows(NotFound.class, () -> read(model, new ReadOptions()));
      assertTrue(told.getMessage().contains("token_embedding.weight"), told.getMessage());
      ReadReport report = read(model, new ReadOptions().rename(Model.gpt2Names()));
      assertEquals(new ReadReport(model.parameters().size(), List.of(), List.of()), report);
      try (Predictor predictor = new Predictor(model)) {
        predictor.run(Batch.of("tokens", Array.of(tokens, ROWS, LENGTH)), Batch.of("logits", Array.of(logits, ROWS, LENGTH, VOCABULARY)));
      }
    }
    assertArrayEquals(wanted, logits, 1e-4f);
  }
}
