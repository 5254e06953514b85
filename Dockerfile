# docker build -t lockstep .                        docker run --rm lockstep --epochs 1
# docker build -t lockstep --build-arg CUDA=ON .    docker run --rm --gpus all lockstep --epochs 1
# One stage builds the folder that cpack -G TGZ packs; the last one has that folder and what its programs need.
# CUDA is that of Python's packages.
ARG CUDA=OFF

FROM debian:12-slim AS toolkit-OFF
RUN mkdir /opt/cuda

FROM debian:12-slim AS toolkit-ON
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/cuda && /opt/cuda/bin/pip install --no-cache-dir nvidia-cuda-nvcc==13.* \
  nvidia-cuda-cccl==13.* nvidia-cuda-runtime==13.* nvidia-nvtx==13.* nvidia-cublas==13.* nvidia-cudnn-cu13==9.* \
  nvidia-nccl-cu13==2.* && chmod +x /opt/cuda/lib/python3*/site-packages/nvidia/*/bin/*

# hadolint ignore=DL3006
FROM toolkit-${CUDA} AS build
ARG CUDA
ENV PATH=/opt/cuda/bin:$PATH
WORKDIR /source
COPY . .
RUN scripts/setup.sh train && cmake --preset release -DLOCKSTEP_CUDA=${CUDA} -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF
RUN cmake --build --preset release && cpack --config build/release/CPackConfig.cmake -G TGZ -B /packages &&\
  mkdir /lockstep && tar -xzf /packages/*.tar.gz -C /lockstep --strip-components 1

FROM debian:12-slim
COPY --from=build /opt/cuda /opt/cuda
RUN --mount=from=build,source=/lockstep,target=/built /built/scripts/setup.sh run && rm -rf /var/lib/apt/lists/* &&\
  useradd --uid 1000 --create-home trainer
COPY --from=build --chown=trainer /lockstep /lockstep
USER 1000
WORKDIR /lockstep
ENTRYPOINT ["/lockstep/scripts/train.sh"]
