# Which kernels are compiled together: most of a kernel's time is its headers, which nvcc parses four times. Anonymous
# namespaces of a family may not share a name. Long families first, so that a build does not end with one alone.
set(LOCKSTEP_CUDA_FAMILIES norm conv image pool elementwise reduce loss optim random linear)
set(LOCKSTEP_CUDA_norm batch_norm batch_norm_affine batch_norm_backward batch_norm_stats)
set(LOCKSTEP_CUDA_conv conv2d conv2d_fused depthwise_conv2d depthwise_conv2d_weight)
set(LOCKSTEP_CUDA_image channel_gate concat_channels crop_flip_normalize mix_images normalize_image subsample_pad)
set(LOCKSTEP_CUDA_pool adaptive_avg_pool2d global_avg_pool max_pool2d)
set(LOCKSTEP_CUDA_elementwise add cast convert_rows copy fill relu scale)
set(LOCKSTEP_CUDA_reduce peer_sum tensor_digests tensor_norms tree_sum)
set(LOCKSTEP_CUDA_loss loss_scale nonfinite_rows softmax_cross_entropy)
set(LOCKSTEP_CUDA_optim adam clip_factor ema_update larc_factors lookahead sgd)
set(LOCKSTEP_CUDA_random dropout fill_uniform)
set(LOCKSTEP_CUDA_linear add_bias linear)

# lockstep_cuda_units(<folder> <variable>): sources of all kernels of the folder, for nvcc and for the emulator. A
# family's is <build>/cuda_units/<family>_cuda.cu; a kernel of no family is a unit of its own.
function(lockstep_cuda_units folder variable)
  file(GLOB kernels RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_cuda.cu)
  foreach(family ${LOCKSTEP_CUDA_FAMILIES})
    set(text "")
    foreach(name ${LOCKSTEP_CUDA_${family}})
      set(kernel ${folder}/${name}_cuda.cu)
      if(NOT kernel IN_LIST kernels)
        message(FATAL_ERROR "LockstepCudaUnits.cmake: ${family} has ${kernel}, which is missing or in another family")
      endif()
      list(REMOVE_ITEM kernels ${kernel})
      string(APPEND text "#include \"${kernel}\"\n")  # no absolute path, so that clones share what ccache holds
    endforeach()
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda_units/${family}_cuda.cu CONTENT "${text}" @ONLY)
    list(APPEND units ${PROJECT_BINARY_DIR}/cuda_units/${family}_cuda.cu)
  endforeach()
  list(TRANSFORM kernels PREPEND ${PROJECT_SOURCE_DIR}/)
  set(${variable} ${units} ${kernels} PARENT_SCOPE)
endfunction()
