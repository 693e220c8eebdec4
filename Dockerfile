# issuesmith with what the commands of a PHP or JavaScript project need. To try it:
#
#   docker build -t issuesmith .
#   docker run --rm issuesmith demo
#
# It is also an image for a runner's jobs (label NAME:docker://issuesmith). There give the
# runner's configuration `options: --user root` and `docker_host: "-"` below `container:`.
# As root issuesmith runs commands as a user of their own, who find service containers by
# name; as the image's user it runs them as itself, and they need addresses.
#
# BASE is a Debian or something made of one, BUILDER anything with Go 1.26.
ARG BASE=debian:bookworm-slim
ARG BUILDER=golang:1.26

FROM ${BASE} AS tools
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      ca-certificates git unzip \
      composer php-cli php-curl php-mbstring php-mysql php-xml php-zip \
      nodejs npm \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --shell /bin/bash issuesmith

FROM ${BUILDER} AS build
ARG GOPROXY
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY internal internal
ARG VERSION=development
ARG COMMIT=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X issuesmith/internal/app.release=${VERSION} -X issuesmith/internal/app.commit=${COMMIT}" \
      -o /issuesmith .

FROM tools
COPY --from=build /issuesmith /usr/local/bin/issuesmith
USER issuesmith
WORKDIR /home/issuesmith
ENTRYPOINT ["issuesmith"]
