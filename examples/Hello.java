import static org.comm4j.api.ReduceOp.SUM;

import java.util.Arrays;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;

public final class Hello {
  public static void main(String[] args) {
    try (Communicator comm = Communicators.open()) {
      float[] data = {1, comm.rank(), 0.5f};
      comm.allReduce(data, SUM); // every rank now has the sum over all ranks
      System.out.println("rank " + comm.rank() + " has " + Arrays.toString(data));
    }
  }
}
