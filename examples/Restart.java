import static org.comm4j.api.ReduceOp.AVERAGE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Random;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;

/// A data-parallel training that, started again, goes on from what it last saved: the frame of most
/// of them.
///
///     ./comm-cli run -n 4 examples/Restart.java weights.bin
///
/// Rank 0 alone reads and writes the file. The model is a linear one, its data are made up.
public final class Restart {
  private static final int STEPS = 1000;
  private static final int STEPS_BETWEEN_SAVES = 100;
  private static final int WEIGHTS = 8;
  private static final float LEARNING_RATE = 0.1f;

  private Restart() {}

  public static void main(String[] args) throws IOException {
    Path file = Path.of(args.length == 0 ? "weights.bin" : args[0]);
    try (Communicator comm = Communicators.open()) {
      float[] weights = train(comm, file, STEPS);
      if (comm.rank() == 0) {
        System.out.println(Arrays.toString(weights));
      }
    }
  }

  static float[] train(Communicator comm, Path file, int steps) throws IOException {
    float[] weights = new float[WEIGHTS];
    int[] step = new int[1];
    if (comm.rank() == 0) {
      step[0] = load(file, weights); // or a random start, and 0
    }
    comm.broadcast(step, 0); // all ranks begin with what rank 0 has
    comm.broadcast(weights, 0);

    while (step[0] < steps) {
      float[] gradient = gradient(weights, step[0], comm.rank()); // of this rank's data
      comm.allReduce(gradient, AVERAGE); // the same bits on all ranks, so weights stay equal
      for (int i = 0; i < WEIGHTS; i++) {
        weights[i] -= LEARNING_RATE * gradient[i];
      }
      step[0]++;
      if (comm.rank() == 0 && step[0] % STEPS_BETWEEN_SAVES == 0) {
        save(file, step[0], weights);
      }
    }
    return weights;
  }

  /// For one sample of a function whose weights are 1, 2, 3, …
  private static float[] gradient(float[] weights, int step, int rank) {
    Random random = new Random(step * 10_000L + rank);
    float[] sample = new float[WEIGHTS];
    float error = 0;
    for (int i = 0; i < WEIGHTS; i++) {
      sample[i] = random.nextFloat() - 0.5f;
      error += (weights[i] - (i + 1)) * sample[i];
    }
    for (int i = 0; i < WEIGHTS; i++) {
      sample[i] *= error;
    }
    return sample;
  }

  private static int load(Path file, float[] weights) throws IOException {
    if (Files.notExists(file)) {
      Random random = new Random();
      for (int i = 0; i < WEIGHTS; i++) {
        weights[i] = random.nextFloat();
      }
      return 0;
    }
    ByteBuffer saved = ByteBuffer.wrap(Files.readAllBytes(file));
    int step = saved.getInt();
    saved.asFloatBuffer().get(weights);
    return step;
  }

  /// Who is killed while it writes leaves the file of before.
  private static void save(Path file, int step, float[] weights) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(Integer.BYTES + WEIGHTS * Float.BYTES).putInt(step);
    bytes.asFloatBuffer().put(weights);
    Path written = Path.of(file + ".new");
    Files.write(written, bytes.array());
    Files.move(written, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }
}
